package main

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/pflag"
)

// interfaceFlags name a network interface.
type interfaceFlags struct {
	device    string
	namespace string
}

func (i *interfaceFlags) add(f *pflag.FlagSet) {
	f.StringVarP(&i.device, "device", "d", "", "network `interface` to make a card of")
	f.StringVar(&i.namespace, "netns", "", "`name` or file of the network namespace to be in")
}

func (i *interfaceFlags) check() error {
	if i.device == "" {
		return errors.New("which interface? -d eth0; ip link lists them")
	}
	return nil
}

// path is the file of the network namespace, empty for the process's own.
func (i *interfaceFlags) path() string { return namespacePath(i.namespace) }

// enter says whether the process may enter the namespace, if one is named.
func (i *interfaceFlags) enter() error {
	if i.namespace == "" {
		return nil
	}
	return requireCapabilities("--netns", capSysAdmin)
}

// cardFlags are those of every command that makes a card of an interface.
type cardFlags struct {
	interfaceFlags
	modeFlags
	gidIndex int
	log      *slog.Logger
}

func (c *cardFlags) add(f *pflag.FlagSet) {
	c.interfaceFlags.add(f)
	f.IntVarP(&c.gidIndex, "gid-index", "g", anyGID, "`line` of the GID table to send from (roced show gid); -1: what suits")
	c.modeFlags.add(f)
}

func (c *cardFlags) check() error {
	if c.gidIndex < anyGID {
		return fmt.Errorf("--gid-index %d: from 0 on, or -1", c.gidIndex)
	}
	return errors.Join(c.interfaceFlags.check(), c.modeFlags.check())
}

// open makes the card.
func (c *cardFlags) open(options ...hca.Option) (*device, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	makeRoom(2) // the worker and the command's own goroutine
	return openDevice(c.device, c.path(), c.log, append(options, c.options()...)...)
}

// namespacePath is the file of a network namespace: of a name as ip-netns(8) gives it,
// or a path as it is. Empty stands for the process's own.
func namespacePath(name string) string {
	if name == "" || strings.Contains(name, "/") {
		return name
	}
	return filepath.Join("/run/netns", name)
}
