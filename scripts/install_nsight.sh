#!/bin/bash
# Put a working `ncu` (Nsight Compute 2024.1) and `nsys` (Nsight Systems 2023.4) under PREFIX on Debian 12 or 13,
# amd64; no GPU needed.  Does nothing when PREFIX already works.  The packages are Debian's own (non-free); apt
# verifies them, with lists and cache in a temporary directory: the system's apt configuration is not touched.
#   usage: scripts/install_nsight.sh [PREFIX]     (default /opt/nsight)
# Root is needed only where libssh-4, libpfm4 or libelf1 is missing.  About 530 MB to download, 380 MB on disk.
# Result: PREFIX/bin/{ncu,nsys}, PREFIX/libcuda (user-mode driver: "a driver but no GPU" on LD_LIBRARY_PATH),
#         PREFIX/samples (real .ncu-rep files, in folders), PREFIX/FileFormat (the documented report format).
set -euo pipefail
prefix=${1:-/opt/nsight}
export NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT=1   # else ncu copies its sections into $HOME

works() {
    local sets linked importer=$prefix/usr/lib/nsight-systems/host-linux-x64/QdstrmImporter
    sets=$("$prefix/bin/ncu" --list-sets 2>/dev/null) && grep -q '^full ' <<<"$sets" &&
        "$prefix/bin/nsys" --version >/dev/null 2>&1 &&
        [ -e "$prefix/libcuda/libcuda.so.1" ] &&
        linked=$(ldd "$importer" 2>/dev/null) && ! grep -q 'not found' <<<"$linked" &&
        compgen -G "$prefix/samples/*/*.ncu-rep" >/dev/null
}
if works; then
    echo "$prefix: ncu and nsys work already"
    exit 0
fi

# The Debian mirror that this machine already uses.
mirror=${DEBIAN_MIRROR:-$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null || true; } |
    sed -nE 's/^URIs: *([^ ]+).*/\1/p; s/^deb (\[[^]]*\] )?([^ ]+) .*/\2/p' | grep -m1 '/debian/\?$' || true)}
[ -n "$mirror" ] || { echo "install_nsight.sh: no Debian mirror found; set DEBIAN_MIRROR" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/lists/partial "$work"/cache/archives/partial "$prefix"/bin
prefix=$(readlink -f "$prefix")

# nsys and its importer link against these; they are in Debian's main component.
need=()
for pair in libssh.so.4:libssh-4 libpfm.so.4:libpfm4 libelf.so.1:libelf1; do
    [ -e "/usr/lib/x86_64-linux-gnu/${pair%%:*}" ] || need+=("${pair##*:}")
done
if [ ${#need[@]} -gt 0 ]; then
    apt-get -q update >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${need[@]}" >/dev/null
fi

echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie non-free" >"$work/sources.list"
apt() {
    apt-get -q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" "$@"
}
apt update >/dev/null
cd "$work"
for p in nsight-compute nsight-compute-target nsight-systems nsight-systems-target libcuda1; do
    wanted=('./usr/lib/*' './usr/share/doc/*/copyright')
    [ "$p" != nsight-compute ] || wanted+=('./usr/share/doc/nsight-compute/examples/*.ncu-rep')
    apt download "$p:amd64" >/dev/null
    # Everything for the command line; neither the graphical tools (Qt, translations) nor the manuals.
    dpkg-deb --fsys-tarfile "${p}"_*.deb | tar -x -C "$prefix" --no-same-owner \
        --wildcards --exclude='*/nsight-compute/host/*' --exclude='*/libQt6*' --exclude='*/libicu*' \
        --exclude='*/host-linux-x64/Plugins/*' --exclude='*/host-linux-x64/resources/*' \
        --exclude='*/host-linux-x64/translations/*' --exclude='*/host-linux-x64/libexec/*' \
        --exclude='*/nsys-ui*' --exclude='*/CrashReporter' --exclude='*/libexporter.so' --exclude='*/libNvQtGui.so' \
        --exclude='*/CollectX/*' --exclude='*/libcupti.so.1[01].*' --exclude='*/libnvperf_grfx_host.so' \
        --exclude='*/python3/dist-packages/_ncu_report.so' --exclude='*/vulkan-layers/*' "${wanted[@]}"
    rm -f "${p}"_*.deb
done

lib=$prefix/usr/lib
# Debian splits nsys over two trees, and nsys looks for its importer beside its own tree; its report scripts
# need two modules that Debian moved; the packaged link to libssh assumes the root file system.
ln -sfn ../../nsight-systems/host-linux-x64 "$lib/x86_64-linux-gnu/nsight-systems/host-linux-x64"
for m in nsysstats gpustats; do
    ln -sfn "../../../../x86_64-linux-gnu/nsight-systems/target-linux-x64/python/lib/$m.py" \
        "$lib/nsight-systems/host-linux-x64/python/lib/$m.py"
done
ln -sfn /usr/lib/x86_64-linux-gnu/libssh.so.4 "$lib/nsight-systems/host-linux-x64/libssh.so.4"
ln -sfn ../usr/lib/nsight-compute/ncu "$prefix/bin/ncu"
ln -sfn ../usr/lib/nsight-systems/target-linux-x64/nsys "$prefix/bin/nsys"
ln -sfn usr/lib/x86_64-linux-gnu/nvidia/current "$prefix/libcuda"
ln -sfn usr/share/doc/nsight-compute/examples "$prefix/samples"
ln -sfn usr/lib/nsight-compute/extras/FileFormat "$prefix/FileFormat"
works || { echo "install_nsight.sh: $prefix was filled, but ncu or nsys does not work there" >&2; exit 1; }
"$prefix/bin/ncu" --version | tail -1
"$prefix/bin/nsys" --version
