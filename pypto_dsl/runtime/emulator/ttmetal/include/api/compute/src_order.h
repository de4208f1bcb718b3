// Emulated compute API: what the vendor declares in src_order.h is in common.h here.
#pragma once
#include "api/compute/common.h"
