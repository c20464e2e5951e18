// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/internal/journal"
	"golang.org/x/sys/unix"
)

// Tuning has kernel settings that affect performance. The best values depend on the workload, so measure. A zero value
// leaves a setting unchanged.
type Tuning struct {
	// DeferHardIRQs is the number of empty NAPI polls before interrupts are enabled again (napi_defer_hard_irqs).
	DeferHardIRQs int
	// GROFlushTimeout is the time between those polls (gro_flush_timeout).
	GROFlushTimeout time.Duration
	// BusyPoll is the maximum time that one call polls the driver (SO_PREFER_BUSY_POLL), and BusyPollBudget the maximum
	// number of frames that it receives.
	BusyPoll       time.Duration
	BusyPollBudget int
}

const (
	knobDeferHardIRQs   = "napi_defer_hard_irqs"
	knobGROFlushTimeout = "gro_flush_timeout"
)

// Apply changes the settings of an interface in the calling thread's namespace; restore resets them to the old values.
func (t Tuning) Apply(name string) (restore func() error, err error) { return t.apply(name, nil) }

// apply is Apply, but keeps the old values in a journal, if not nil, until they are restored.
func (t Tuning) apply(name string, old *journal.Journal) (restore func() error, err error) {
	restore = func() error { return nil }
	values := map[string]int64{}
	if t.DeferHardIRQs != 0 {
		values[knobDeferHardIRQs] = int64(t.DeferHardIRQs)
	}
	if t.GROFlushTimeout != 0 {
		values[knobGROFlushTimeout] = t.GROFlushTimeout.Nanoseconds()
	}
	if len(values) == 0 {
		return restore, nil
	}
	fs, err := host.MountSysfs()
	if err != nil {
		return restore, fmt.Errorf("tune %s: %w", name, err)
	}
	defer fs.Close()
	var undo []func() error
	restore = func() (err error) {
		for _, u := range undo {
			err = errors.Join(err, u())
		}
		return err
	}
	for knob, value := range values {
		u, err := setKnob(fs, knobPath(name, knob), value, func(was string) change {
			return change{old, knob + " " + was}
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("tune %s: %w", name, err), restore())
		}
		undo = append(undo, u)
	}
	return restore, nil
}

func knobPath(interfaceName, knob string) string {
	return filepath.Join("class/net", interfaceName, knob)
}

// change is a line in a journal, if not nil.
type change struct {
	in   *journal.Journal
	line string
}

func (c change) note() error {
	if c.in == nil {
		return nil
	}
	return c.in.Add(c.line)
}

func (c change) forget() error {
	if c.in == nil {
		return nil
	}
	return c.in.Remove(c.line)
}

// setKnob writes a setting; restore writes the old value. restore uses the file opened here, since the path may later
// name another file.
func setKnob(fs host.Sysfs, path string, value int64, from func(was string) change) (restore func() error, err error) {
	file, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	var old [32]byte
	n, err := file.ReadAt(old[:], 0)
	if n == 0 && err != nil {
		return nil, errors.Join(err, file.Close())
	}
	was := strings.TrimSpace(string(old[:n]))
	made := from(was)
	err = made.note()
	if err == nil {
		if _, err = file.WriteAt([]byte(strconv.FormatInt(value, 10)), 0); err != nil {
			err = errors.Join(err, made.forget())
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		_, err := file.WriteAt([]byte(was), 0)
		if errors.Is(err, unix.ENODEV) {
			err = nil // the interface was deleted
		}
		if err == nil {
			err = made.forget()
		}
		return errors.Join(err, file.Close())
	}, nil
}
