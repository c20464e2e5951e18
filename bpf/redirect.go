// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// redirectCounter counts packets that the steering program redirected but the kernel could not deliver, as
// DropRedirect. The XDP program is not notified of them. The counter is a program on the raw tracepoint
// xdp_redirect_err, which requires CAP_BPF and CAP_PERFMON (but not tracefs). It counts only redirects through the
// card's rings.
type redirectCounter struct {
	objs redirectObjects
	link link.Link
	why  error // reason why it does not count, or nil
}

// start starts counting. On an error it sets why.
func (c *redirectCounter) start(steer *steerObjects) {
	if err := c.attach(steer); err != nil {
		c.why = fmt.Errorf("failed redirects are not counted (this needs CAP_PERFMON and the kernel's tracepoints): %w", err)
	}
}

func (c *redirectCounter) attach(steer *steerObjects) error {
	info, err := steer.Rings.Info()
	if err != nil {
		return err
	}
	id, _ := info.ID()
	spec, err := loadRedirect()
	if err != nil {
		return err
	}
	if err := spec.Variables[redirectVarRingsId].Set(uint32(id)); err != nil {
		return err
	}
	shared := map[string]*ebpf.Map{redirectMapCounters: steer.Counters}
	if err := spec.LoadAndAssign(&c.objs, &ebpf.CollectionOptions{MapReplacements: shared}); err != nil {
		return err
	}
	c.link, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: "xdp_redirect_err", Program: c.objs.RocedRedirect})
	return err
}

func (c *redirectCounter) close() error {
	var err error
	if c.link != nil {
		err = c.link.Close()
	}
	return errors.Join(err, c.objs.Close())
}

// Uncounted returns the reason why packets that the kernel could not redirect are counted as Redirected, or nil if they
// are counted as DropRedirect. Before Linux 6.6 one loss is never counted: that of a frame with fragments, longer than
// about 3500 bytes. No RDMA MTU requires such frames on these kernels.
func (s *Steering) Uncounted() error { return s.redirect.why }
