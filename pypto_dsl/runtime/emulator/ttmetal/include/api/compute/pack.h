// Emulated compute API: what the vendor declares in pack.h is in common.h here.
#pragma once
#include "api/compute/common.h"
