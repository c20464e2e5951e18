package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// describeAttached names the XDP program that keeps ours out, and how to remove it,
// as far as the process may know.
func describeAttached(ifindex int) string {
	device, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return fmt.Sprintf("which one is not known: %v", err)
	}
	name, xdp := device.Attrs().Name, device.Attrs().Xdp
	if xdp == nil || xdp.ProgId == 0 {
		return fmt.Sprintf("it is not on %s itself but on a device above it (a bond?): see `bpftool net`", name)
	}
	id := ebpf.ProgramID(xdp.ProgId)
	what := fmt.Sprintf("program id %d%s on %s", id, programName(id), name)
	if holder, ok := findLink(id, ifindex); ok {
		return fmt.Sprintf("%s, held by bpf_link %d: stop the process that holds it, or `bpftool link detach id %d`", what, holder, holder)
	}
	return fmt.Sprintf("%s: remove it with `ip link set dev %s xdp off`, or if that does not help, stop the process that holds it (`bpftool link`)", what, name)
}

// programName is empty unless the process has CAP_SYS_ADMIN, which the kernel wants
// from those who open programs by id.
func programName(id ebpf.ProgramID) string {
	program, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return ""
	}
	defer program.Close()
	info, err := program.Info()
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (%s)", info.Name)
}

// findLink finds the bpf_link by which a program is attached, if it is by one. It
// needs CAP_SYS_ADMIN.
func findLink(id ebpf.ProgramID, ifindex int) (link.ID, bool) {
	links := new(link.Iterator)
	defer links.Close()
	for links.Next() {
		info, err := links.Link.Info()
		if err != nil || info.Program != id {
			continue
		}
		if xdp := info.XDP(); xdp != nil && int(xdp.Ifindex) == ifindex {
			return info.ID, true
		}
	}
	return 0, false
}
