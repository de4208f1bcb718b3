// Emulated compute API: what the vendor declares in reg_api.h is in common.h here.
#pragma once
#include "api/compute/common.h"
