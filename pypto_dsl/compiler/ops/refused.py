"""Operations of PyPTO that do not exist here, each with its reason: these names are refused by PT127, not as misspellings."""
from __future__ import annotations

_CONVOLUTION = ("convolutions need a matrix unit fed by image patches on every target, and none of the placements makes such patches",
                "write it as a matrix product, pypto.matmul, over patches taken with pypto.view")
_DISTRIBUTED = ("one kernel runs on one device here: there is no communication between devices",
                "move the data between devices on the host, outside the kernel")
_EXPERIMENTAL = "PyPTO has it under `experimental`, and so has this language"
_BUFFER = ("it names the on-chip buffer of one vendor's vector cores", "use `pypto.index_add`, which the compiler places itself")
_STEPS = ("it is one step of a device's own sorting algorithm", "use `pypto.sort`, `pypto.argsort` or `pypto.topk`")

# name -> (reason, what to do instead)
REFUSED: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("conv", "conv1d", "conv2d", "conv3d"), _CONVOLUTION),
    **dict.fromkeys(("shmem_put", "shmem_get", "shmem_signal", "shmem_wait_until", "shmem_barrier_all", "shmem_load", "shmem_store",
                     "shmem_clear_data", "shmem_clear_signal", "create_shmem_tensor", "create_shmem_signal"), _DISTRIBUTED),
    **{name: (_EXPERIMENTAL, f"`pypto.experimental.{name}`") for name in (
        "gather_in_l1", "gather_in_ub", "online_softmax", "online_softmax_update", "transposed_batchmatmul")},
    "index_add_ub": _BUFFER,
    **dict.fromkeys(("sort32", "mrgsort"), _STEPS),
}
