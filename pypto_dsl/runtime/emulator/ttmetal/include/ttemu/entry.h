// Included before every kernel: the one symbol of a kernel's shared object that the emulator looks up.
#pragma once
__attribute__((visibility("default"))) void kernel_main();
