"""Import torch, use the GPU once, and print what is here as JSON."""

import json
import platform
import time

began = time.perf_counter()
import torch  # noqa: E402

imported = time.perf_counter() - began
gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
if gpu:
    torch.ones(1 << 20, device="cuda").sum().item()
print(
    json.dumps(
        {
            "gpu": gpu,
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "CUDA of torch": torch.version.cuda,
            "seconds to import torch": round(imported, 1),
            "seconds until the GPU answered": round(time.perf_counter() - began, 1),
        }
    )
)
