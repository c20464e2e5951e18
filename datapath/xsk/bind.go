// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// bindTimeout is the maximum time to wait for a queue whose last socket was just closed. The kernel frees the queue
// after an RCU grace period and a work item, which has taken more than a second on a loaded machine. Tests of a busy
// queue set a shorter time.
var bindTimeout = 4 * time.Second

const (
	bindPause    = time.Millisecond // pause before the first retry; doubled for each further one
	maxBindPause = 64 * time.Millisecond
)

// MultiBufferSupported reports whether the kernel supports XDP_USE_SG (Linux 6.6). It binds to an invalid interface:
// bind(2) checks the flags first (EINVAL), then the interface (ENODEV).
func MultiBufferSupported() (bool, error) {
	probe := &Socket{fd: -1}
	if err := probe.create(); err != nil {
		return false, err
	}
	defer probe.Close()
	switch err := unix.Bind(probe.fd, &unix.SockaddrXDP{Flags: unix.XDP_USE_SG}); err {
	case unix.ENODEV:
		return true, nil
	case unix.EINVAL:
		return false, nil
	default:
		return false, fmt.Errorf("probe XDP_USE_SG: %w", err)
	}
}

func (s *Socket) bind() error {
	if s.config.MultiBuffer {
		if ok, err := MultiBufferSupported(); err != nil {
			return err
		} else if !ok {
			return ErrMultiBuffer
		}
	}
	target := &unix.SockaddrXDP{
		Flags:   s.config.bindFlags(),
		Ifindex: uint32(s.config.Interface),
		QueueID: uint32(s.config.Queue),
	}
	err := unix.Bind(s.fd, target)
	deadline := time.Now().Add(bindTimeout)
	for pause := bindPause; err == unix.EBUSY && time.Now().Before(deadline); pause = min(2*pause, maxBindPause) {
		time.Sleep(pause)
		err = unix.Bind(s.fd, target)
	}
	return s.config.explainBind(err)
}

// bindFlags returns the flags for bind(2). For Auto they request no mode: the kernel then tries zero-copy and falls
// back to copy.
func (c Config) bindFlags() uint16 {
	flags := uint16(unix.XDP_USE_NEED_WAKEUP)
	switch c.Mode {
	case Copy:
		flags |= unix.XDP_COPY
	case ZeroCopy:
		flags |= unix.XDP_ZEROCOPY
	}
	if c.MultiBuffer {
		flags |= unix.XDP_USE_SG
	}
	return flags
}

func (c Config) explainBind(err error) error {
	switch err {
	case nil:
		return nil
	case unix.EBUSY:
		return ErrQueueBusy
	case unix.ENODEV:
		return ErrNoInterface
	case unix.EINVAL:
		if c.Mode != ZeroCopy {
			return ErrNoQueue
		}
		return fmt.Errorf("the queue does not exist (see ethtool -l), or the driver refuses zero-copy, for example because the MTU exceeds a chunk: %w", err)
	case unix.EOPNOTSUPP:
		return ErrZeroCopy
	}
	return fmt.Errorf("bind: %w", err)
}

// inspect reads the mode that the kernel has chosen.
func (s *Socket) inspect() error {
	options, err := getOption[uint32](s.fd, unix.XDP_OPTIONS)
	if err != nil {
		return fmt.Errorf("read XDP_OPTIONS: %w", err)
	}
	s.info = Info{
		Interface:   s.config.Interface,
		Queue:       s.config.Queue,
		ZeroCopy:    options&unix.XDP_OPTIONS_ZEROCOPY != 0,
		MultiBuffer: s.config.MultiBuffer,
		MaxUnsplit:  int(s.chunkSize) - unix.XDP_PACKET_HEADROOM,
	}
	return nil
}
