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

// cardFlags are those of every command that makes a card of an interface.
type cardFlags struct {
	device    string
	namespace string
	gidIndex  int
	log       *slog.Logger
}

func (c *cardFlags) add(f *pflag.FlagSet) {
	f.StringVarP(&c.device, "device", "d", "", "network `interface` to make a card of")
	f.StringVar(&c.namespace, "netns", "", "`name` or file of the network namespace to be in")
	f.IntVarP(&c.gidIndex, "gid-index", "g", anyGID, "`line` of the GID table to send from; -1: what suits")
}

func (c *cardFlags) check() error {
	if c.device == "" {
		return errors.New("which interface? -d eth0; ip link lists them")
	}
	if c.gidIndex < anyGID {
		return fmt.Errorf("--gid-index %d: from 0 on, or -1", c.gidIndex)
	}
	return nil
}

// path is the file of the network namespace, empty for the process's own.
func (c *cardFlags) path() string { return namespacePath(c.namespace) }

// open makes the card.
func (c *cardFlags) open(options ...hca.Option) (*device, error) {
	if c.namespace != "" {
		if err := requireCapabilities("--netns", capSysAdmin); err != nil {
			return nil, err
		}
	}
	makeRoom(2) // the worker and the command's own goroutine
	return openDevice(c.device, c.path(), c.log, options...)
}

// namespacePath is the file of a network namespace: of a name as ip-netns(8) gives it,
// or a path as it is. Empty stands for the process's own.
func namespacePath(name string) string {
	if name == "" || strings.Contains(name, "/") {
		return name
	}
	return filepath.Join("/run/netns", name)
}
