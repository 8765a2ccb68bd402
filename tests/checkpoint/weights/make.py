"""Makes the files of this folder with PyTorch, and expected.json: dtype, shape and SHA-256 of each tensor.

    scripts/bench-peers && .peers/torch/bin/python tests/checkpoint/weights/make.py

They are kept in the repository because PyTorch for Python is 6 GB, which no test should need.
"""

import collections
import hashlib
import json
import pathlib
import sys

import torch

folder = pathlib.Path(__file__).parent
torch.manual_seed(5)
expected = {}


def save(name, tensors, **options):
    torch.save(tensors, folder / name, **options)
    expected[name] = {
        key: {
            "dtype": str(t.dtype).removeprefix("torch."),
            "shape": list(t.shape),
            "sha256": hashlib.sha256(bytes(t.detach().contiguous().flatten().view(torch.uint8).tolist())).hexdigest(),
        }
        for key, t in tensors.items()
    }


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 3, 3)
        self.norm = torch.nn.BatchNorm2d(3)
        self.fc = torch.nn.Linear(12, 5)


save("net.pt", Net().state_dict())
save("net-protocol-4.pt", Net().state_dict(), pickle_protocol=4)
save("dict.pt", {"w": torch.randn(3, 4)})

torch.serialization.set_crc32_options(False)
save("no-checksums.pt", {"w": torch.randn(3, 4)})
torch.serialization.set_crc32_options(True)

base = torch.arange(24.0)
save(
    "views.pt",
    collections.OrderedDict(
        whole=base,
        shared=base,
        part=base[5:11],
        matrix=base.view(4, 6),
        transposed=base.view(4, 6).t(),
        strided=base.view(4, 6)[1:4:2, ::3],
        permuted=base.view(2, 3, 4).permute(2, 0, 1),
        channels_last=torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        scalar=base[7],
        empty=torch.empty(0, 4),
        parameter=torch.nn.Parameter(base[:3].clone()),
    ),
)
save(
    "dtypes.pt",
    {
        str(dtype).removeprefix("torch."): torch.arange(-3, 4).to(dtype)
        for dtype in (
            torch.float64, torch.float32, torch.float16, torch.bfloat16,
            torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool,
        )
    },
)

# What is refused, and why.
class Custom:
    pass


w = torch.randn(2)
torch.save({"model": {"w": w}, "epoch": 3}, folder / "refused-nested.pt")
torch.save({"w": w, "epoch": 3}, folder / "refused-number.pt")
torch.save([w], folder / "refused-list.pt")
torch.save(Net(), folder / "refused-module.pt")
torch.save({"w": Custom()}, folder / "refused-class.pt")
torch.save({"w": torch.arange(3).to(torch.int16)}, folder / "refused-int16.pt")
torch.save({"w": torch.ones(1).expand(1000)}, folder / "refused-expanded.pt")
torch.save({"w": w}, folder / "refused-legacy.pt", _use_new_zipfile_serialization=False)
torch.jit.script(torch.nn.Linear(2, 2)).save(str(folder / "refused-script.pt"))

json.dump(expected, open(folder / "expected.json", "w"), indent=1, sort_keys=True)
print(torch.__version__, sys.version)
