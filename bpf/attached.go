// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// sharingAdvice is the remedy if another roced process owns the interface. It does not mention detaching the program,
// which is in use.
const sharingAdvice = "end that process, or use a separate interface for each program: " +
	"`ip link add link %s name NAME type macvlan mode bridge`"

// serviceAdvice is the remedy if that process is a service.
const serviceAdvice = "programs can use its device, by client.Dial or --socket %s; another service needs its own interface"

// describeAttached describes the attached XDP program, its owner and the remedy, as far as the process has the
// privileges to determine them. tag is the tag of the steering program.
func describeAttached(ifindex int, tag string) string {
	device, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return fmt.Sprintf("its name is unknown: %v", err)
	}
	name, xdp := device.Attrs().Name, device.Attrs().Xdp
	if xdp == nil || xdp.ProgId == 0 {
		return fmt.Sprintf("it is attached to a device above %s (a bond?), see `bpftool net`", name)
	}
	id := ebpf.ProgramID(xdp.ProgId)
	program := programName(id)
	what := fmt.Sprintf("program id %d%s on %s", id, inBrackets(program), name)
	holders := findHolders(id)
	if isRoced(program, tag, holders) {
		for _, h := range holders {
			if socket := serviceSocket(h.pid); socket != "" {
				return fmt.Sprintf("%s, a program of roced, held by process %d%s, the service at %s: "+serviceAdvice, what, h.pid, inBrackets(h.command), socket, socket)
			}
		}
		return fmt.Sprintf("%s, a program of roced, held by %s: "+sharingAdvice, what, describeHolders(holders), name)
	}
	if holder, ok := findLink(id, ifindex); ok {
		return fmt.Sprintf("%s, held through bpf_link %d by %s: end that process, or `bpftool link detach id %d`",
			what, holder, describeHolders(holders), holder)
	}
	if len(holders) > 0 {
		return fmt.Sprintf("%s, held by %s: end that process", what, describeHolders(holders))
	}
	return fmt.Sprintf("%s: `ip link set dev %s xdp off` removes it unless a process holds it; as root `bpftool link` shows which, "+
		"and whether it is roced's (roced_steer): then %s", what, name, fmt.Sprintf(sharingAdvice, name))
}

// isRoced compares the program's name, or its tag if the process is not allowed to read the name.
func isRoced(program, tag string, holders []holder) bool {
	if program != "" {
		return program == steerProgRocedSteer
	}
	for _, h := range holders {
		if h.tag == tag {
			return true
		}
	}
	return false
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func describeHolders(holders []holder) string {
	if len(holders) == 0 {
		return "a process that only root can see (`bpftool link`)"
	}
	var list []string
	for _, h := range holders {
		list = append(list, fmt.Sprintf("process %d%s", h.pid, inBrackets(h.command)))
	}
	return strings.Join(list, ", ")
}

// programName returns the program's name. It returns "" without CAP_SYS_ADMIN, which is required to open a program by
// its id.
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
	return info.Name
}

// findLink finds the bpf_link that attaches a program to an interface. It requires CAP_SYS_ADMIN.
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

// Attached describes the XDP program on an interface of the calling thread's namespace. It returns "" if no program is attached.
// steering reports whether it is a program of this package. Without CAP_SYS_ADMIN the name is unknown and steering is
// false.
func Attached(device netlink.Link) (program string, steering bool) {
	xdp := device.Attrs().Xdp
	if xdp == nil || !xdp.Attached {
		return "", false
	}
	name := programName(ebpf.ProgramID(xdp.ProgId))
	return fmt.Sprintf("program id %d%s on %s", xdp.ProgId, inBrackets(name), device.Attrs().Name), name == steerProgRocedSteer
}
