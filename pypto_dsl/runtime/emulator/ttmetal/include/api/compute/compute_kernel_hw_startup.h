// Emulated compute API: what the vendor declares in compute_kernel_hw_startup.h is in common.h here.
#pragma once
#include "api/compute/common.h"
