// Emulated compute API: what the vendor declares in reconfig_data_format.h is in common.h here.
#pragma once
#include "api/compute/common.h"
