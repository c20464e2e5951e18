// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Mode is the XDP mode of an interface.
type Mode int

const (
	// Auto is Native if the driver supports it, else Generic.
	Auto Mode = iota
	// Native runs the program in the driver, before a socket buffer is allocated.
	Native
	// Generic runs it in the network stack, which is slower but works on any interface.
	Generic
)

func (m Mode) String() string {
	switch m {
	case Auto:
		return "auto"
	case Native:
		return "native"
	case Generic:
		return "generic"
	}
	return fmt.Sprintf("mode(%d)", int(m))
}

// Attach attaches the program to an interface in the network namespace of the calling thread. (If that is not the
// namespace of the process, lock the goroutine to its thread.) It requires no capability, since the process has the
// program's descriptor. The program remains attached until Close or until the process ends.
//
// Errors: ErrAttached, whose text contains the attached program and how to remove it; ErrNoNative, only for Native;
// ErrPermission; ENODEV; EALREADY if this Steering is attached.
func (s *Steering) Attach(ifindex int, mode Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != nil {
		return fmt.Errorf("attach the steering program to interface %d: %w", ifindex, unix.EALREADY)
	}
	device, err := deviceByIndex(ifindex)
	if err != nil {
		return fmt.Errorf("attach the steering program to interface %d: %w", ifindex, err)
	}
	if mode == Auto {
		return s.attachAuto(device)
	}
	return s.attach(device, mode)
}

// deviceByIndex returns ENODEV for an interface that does not exist; bpf(2) would return EINVAL.
func deviceByIndex(ifindex int) (netlink.Link, error) {
	if ifindex < 1 {
		return nil, unix.ENODEV
	}
	device, err := netlink.LinkByIndex(ifindex)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, unix.ENODEV
	}
	return device, err
}

func (s *Steering) attachAuto(device netlink.Link) error {
	native := s.attach(device, Native)
	if !errors.Is(native, ErrNoNative) {
		return native
	}
	if err := s.attach(device, Generic); err != nil {
		return fmt.Errorf("%w (native XDP failed before: %w)", err, native)
	}
	s.fallback = native
	return nil
}

func (s *Steering) attach(device netlink.Link, mode Mode) error {
	flags := link.XDPDriverMode
	if mode == Generic {
		flags = link.XDPGenericMode
	}
	attached, err := attachLink(link.XDPOptions{
		Program:   s.objs.RocedSteer,
		Interface: device.Attrs().Index,
		Flags:     flags,
	})
	if err != nil {
		return s.explainAttach(err, device, mode)
	}
	info, err := attached.Info()
	if err != nil {
		return errors.Join(fmt.Errorf("attach the steering program to %s: %w", device.Attrs().Name, err), attached.Close())
	}
	s.link, s.mode, s.program = attached, mode, info.Program
	return nil
}

// An interface can remain busy briefly after its owner has released it or was killed: the kernel frees a bpf_link when
// its last descriptor is closed, and a process that is just being forked has a copy.
const (
	attachTries = 20
	attachPause = 10 * time.Millisecond
)

func attachLink(options link.XDPOptions) (attached link.Link, err error) {
	for range attachTries {
		attached, err = link.AttachXDP(options)
		if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EEXIST) {
			break
		}
		time.Sleep(attachPause)
	}
	return attached, err
}

// explainAttach interprets the errors of dev_xdp_attach (net/core/dev.c in the kernel). All other errnos are from the
// driver.
func (s *Steering) explainAttach(err error, device netlink.Link, mode Mode) error {
	doing := fmt.Sprintf("attach the steering program to %s (%s XDP)", device.Attrs().Name, mode)
	switch {
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%s: %w: %s", doing, ErrAttached, describeAttached(device.Attrs().Index, s.tag()))
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%s: %w", doing, ErrPermission)
	case mode == Native:
		return fmt.Errorf("%s: %w with this driver, or not with the interface's present MTU, offloads or queues: %w", doing, ErrNoNative, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// tag returns the kernel's hash of the program's instructions, or "" if it is unknown.
func (s *Steering) tag() string {
	info, err := s.objs.RocedSteer.Info()
	if err != nil {
		return ""
	}
	return info.Tag
}

// Check returns ErrDetached if another process has removed or replaced the program. It only reads its own bpf_link, and
// requires no capability.
func (s *Steering) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil {
		return nil
	}
	info, err := s.link.Info()
	if err != nil {
		return fmt.Errorf("query the link of the steering program: %w", err)
	}
	if xdp := info.XDP(); xdp == nil || xdp.Ifindex == 0 {
		return ErrDetached
	}
	if info.Program != s.program {
		return fmt.Errorf("%w: program id %d replaced it", ErrDetached, info.Program)
	}
	return nil
}

// Renew makes the driver run the program on all receive queues. veth runs it on the queues that exist at the time of
// Attach. Packets in queues that ethtool -L adds later bypass it. Renew replaces the attached program by a copy without
// losing packets. It does nothing without Renewable, and in generic mode, which does not have this problem.
func (s *Steering) Renew() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil || s.spare == nil || s.mode != Native {
		return nil
	}
	if err := s.link.Update(s.spare); err != nil {
		return fmt.Errorf("attach the steering program to further queues: %w", err)
	}
	s.objs.RocedSteer, s.spare = s.spare, s.objs.RocedSteer
	info, err := s.link.Info()
	if err != nil {
		return fmt.Errorf("query the link of the steering program: %w", err)
	}
	s.program = info.Program
	return nil
}

// AttachedMode returns the mode of the attachment: Native or Generic, or Auto if not attached.
func (s *Steering) AttachedMode() Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// Fallback returns the reason why Attach with Auto used Generic, or nil.
func (s *Steering) Fallback() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fallback
}

func (s *Steering) detach() error {
	if s.link == nil {
		return nil
	}
	err := s.link.Close()
	s.link, s.mode, s.fallback = nil, Auto, nil
	return err
}
