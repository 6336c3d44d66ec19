"""Tools are found by option, environment, PATH and install folder; what they can do is asked once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ncukit.errors import ToolError
from ncukit.run.tools import capabilities, locate

NCU = """\
#!/bin/sh
echo "$@" >> "{log}"
case "$1" in
--version) echo "Version {version} (build 1) (public-release)";;
--help) printf '  -k [ --kernel-name ] arg   Filter\\n  --nvtx   Enable; see --not-an-option\\n';;
esac
"""

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make(place: str, version: str = "2024.1.1.0", text: str = NCU) -> Path:
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(version=version, log=tmp_path / "log"))
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": f"{tmp_path}/path:/bin:/usr/bin",
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": f"{tmp_path}/cache",
    }


def test_option_before_variable_before_path_before_folder(
    make: Make, environ: dict[str, str], tmp_path: Path
) -> None:
    option, variable = make("o/ncu"), make("v/ncu")
    path, folder = make("path/ncu"), make("opt/nvidia/nsight-compute/2025.1.0/ncu", "2025.1.0.0")
    environ["NCUKIT_NCU"] = str(variable)
    assert locate.find("ncu", option, environ=environ, root=tmp_path).path == option
    assert locate.find("ncu", environ=environ, root=tmp_path).path == variable
    del environ["NCUKIT_NCU"]
    found = locate.find("ncu", environ=environ, root=tmp_path)
    assert (found.path, found.source) == (path, "PATH")
    path.unlink()
    found = locate.find("ncu", environ=environ, root=tmp_path)
    assert (found.path, found.source) == (folder, "install folder")


def test_the_newest_install_is_taken_by_what_it_says_not_by_its_folder(
    make: Make, environ: dict[str, str], tmp_path: Path
) -> None:
    make("usr/local/cuda-12.4/bin/ncu", "2024.1.0.0")
    newest = make("opt/nvidia/nsight-compute/2023.3.0/ncu", "2025.3.1.0")
    make("usr/lib/nsight-compute/ncu", "2022.3.0.0")
    assert locate.find("ncu", environ=environ, root=tmp_path).path == newest


@pytest.mark.parametrize(
    ("tool", "place"),
    [
        ("ncu", "usr/local/cuda/bin/ncu"),
        ("ncu", "usr/local/cuda-13.0/bin/ncu"),
        ("ncu", "opt/nvidia/nsight-compute/2024.3.2/ncu"),
        ("ncu", "usr/lib/nsight-compute/ncu"),
        ("nsys", "opt/nvidia/nsight-systems/2024.6.2/bin/nsys"),
        ("nsys", "opt/nvidia/nsight-systems-cli/2025.1.1/target-linux-x64/nsys"),
        ("nsys", "usr/lib/nsight-systems/target-linux-x64/nsys"),
        ("nsys", "usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64/nsys"),
        ("nvcc", "usr/local/cuda-12.4/bin/nvcc"),
        ("nvcc", "usr/lib/nvidia-cuda-toolkit/bin/nvcc"),
    ],
)
def test_the_usual_folders_are_searched(
    make: Make, environ: dict[str, str], tmp_path: Path, tool: locate.Tool, place: str
) -> None:
    expected = make(place)
    assert locate.find(tool, environ=environ | {"PATH": ""}, root=tmp_path).path == expected


def test_all_installs_are_listed_each_once(make: Make, environ: dict[str, str], tmp_path: Path) -> None:
    chosen = make("path/ncu", "2022.4.0.0")
    old = make("usr/local/cuda-11.8/bin/ncu", "2022.3.0.0")
    new = make("opt/nvidia/nsight-compute/2025.1.0/ncu", "2025.1.0.0")
    (tmp_path / "usr/local/cuda").symlink_to(tmp_path / "usr/local/cuda-11.8")
    found = locate.installs("ncu", environ=environ, root=tmp_path)
    assert [install.path.resolve() for install in found] == [chosen, new, old]


def test_a_missing_tool_says_where_it_was_looked_for(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ToolError) as error:
        locate.find("ncu", environ=environ | {"PATH": ""}, root=tmp_path)
    assert error.value.code == "tool-missing"
    assert "NCUKIT_NCU" in error.value.hint
    assert "/opt/nvidia/nsight-compute" in error.value.hint
    assert locate.installs("ncu", environ=environ | {"PATH": ""}, root=tmp_path) == ()


@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_wrong_path_is_said_and_no_other_tool_is_taken(
    make: Make, environ: dict[str, str], tmp_path: Path, by: str
) -> None:
    make("path/ncu")
    wrong = str(tmp_path / "nowhere")
    environ |= {"NCUKIT_NCU": wrong} if by == "variable" else {}
    with pytest.raises(ToolError, match="NCUKIT_NCU names" if by == "variable" else "--ncu names") as error:
        locate.find("ncu", wrong if by == "option" else None, environ=environ, root=tmp_path)
    assert error.value.code == "tool-missing"


def test_version_and_options_are_read_from_the_definitions(make: Make, environ: dict[str, str]) -> None:
    found = capabilities.probe("ncu", make("a/ncu", "2024.1.1.0"), environ=environ)
    assert found.version == "2024.1.1.0"
    assert found.numbers == (2024, 1, 1, 0)
    assert found.options[""] == {"--kernel-name", "--nvtx"}
    assert found.has("--nvtx")
    assert not found.has("--not-an-option")


def test_help_is_asked_once_per_binary_and_version(
    make: Make, environ: dict[str, str], tmp_path: Path
) -> None:
    path = make("a/ncu")
    for _ in range(2):
        capabilities.probe("ncu", path, environ=environ)
    assert (tmp_path / "log").read_text().split().count("--help") == 1
    path.write_text(path.read_text() + "# another binary\n")
    capabilities.probe("ncu", path, environ=environ)
    assert (tmp_path / "log").read_text().split().count("--help") == 2


def test_a_broken_or_unwritable_cache_is_no_obstacle(
    make: Make, environ: dict[str, str], tmp_path: Path
) -> None:
    path = make("a/ncu")
    capabilities.probe("ncu", path, environ=environ)
    for file in (tmp_path / "cache").rglob("*.json"):
        file.write_text("{ broken")
    assert capabilities.probe("ncu", path, environ=environ).has("--nvtx")
    (tmp_path / "file").write_text("no folder")
    assert capabilities.probe("ncu", path, environ=environ | {"XDG_CACHE_HOME": f"{tmp_path}/file"}).has(
        "--nvtx"
    )


def test_an_old_tool_is_refused_with_the_version_that_is_needed(make: Make, environ: dict[str, str]) -> None:
    with pytest.raises(ToolError, match=r"2020\.3\.1\.0 at .* is too old: ncukit needs 2021\.1") as error:
        capabilities.probe("ncu", make("a/ncu", "2020.3.1.0"), environ=environ)
    assert error.value.code == "tool-too-old"


def test_a_tool_that_does_not_answer_is_broken_not_old(make: Make, environ: dict[str, str]) -> None:
    broken = (
        "#!/bin/sh\necho 'ncu: error while loading shared libraries: libssh.so: cannot open' >&2; exit 127\n"
    )
    with pytest.raises(ToolError, match=r"does not work.*libssh\.so") as error:
        capabilities.probe("ncu", make("a/ncu", text=broken), environ=environ)
    assert error.value.code == "tool-missing"


def test_the_real_ncu_has_the_options_that_ncukit_builds_on(ncu: Path, environ: dict[str, str]) -> None:
    found = capabilities.probe("ncu", ncu, environ=environ)
    assert found.numbers >= (2021, 1)
    for option in ("--kernel-name", "--launch-skip", "--nvtx-include", "--clock-control", "--export"):
        assert found.has(option)


def test_the_real_nsys_has_options_for_each_of_its_commands(nsys: Path, environ: dict[str, str]) -> None:
    found = capabilities.probe("nsys", nsys, environ=environ)
    assert found.has("--capture-range", "profile")
    assert found.has("--type", "export")
    assert not found.has("--type", "profile")


def test_the_real_nvcc_tells_its_version(nvcc: Path, environ: dict[str, str]) -> None:
    assert capabilities.probe("nvcc", nvcc, environ=environ).numbers >= (11, 0)
