// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/cmd/roced/internal/libraries"
)

const help = `Writes a specification of the Container Device Interface (CDI) for devices
roced.dev/verbs=NAME. The container gets the socket NAME (roced socket add), the C
libraries (for glibc, and in the subdirectory musl for musl), and the environment with
which programs find both. Write the output to /etc/cdi, then run
"podman run --device roced.dev/verbs=NAME". The sockets must exist.`

// kind is the CDI kind of the devices.
const kind = "roced.dev/verbs"

// Paths in the container.
const (
	socketInside    = "/run/roced"
	librariesInside = "/usr/lib/roced"
	socketName      = "roced.sock"
)

// specification is a CDI 0.5.0 specification, which podman 4.1, containerd 1.7 and later read.
type specification struct {
	Version string   `json:"cdiVersion"`
	Kind    string   `json:"kind"`
	Devices []device `json:"devices"`
}

type device struct {
	Name  string `json:"name"`
	Edits edits  `json:"containerEdits"`
}

type edits struct {
	Env    []string `json:"env"`
	Mounts []mount  `json:"mounts"`
}

type mount struct {
	Host      string   `json:"hostPath"`
	Container string   `json:"containerPath"`
	Options   []string `json:"options"`
}

// New returns the command.
func New() *cobra.Command {
	var service, folder string
	cmd := &cobra.Command{Use: "cdi", Short: "Write device specifications for container engines"}
	generate := &cobra.Command{
		Use: "generate NAME...", Short: "Write a CDI specification for sockets", Long: help, Args: cli.Names(math.MaxInt),
		Example: "  roced socket add web1\n  roced cdi generate web1 > /etc/cdi/roced.json\n  podman run --device roced.dev/verbs=web1 IMAGE ibv_devinfo",
		RunE: func(cmd *cobra.Command, names []string) error {
			sockets, err := filepath.Abs(filepath.Join(filepath.Dir(service), "sockets"))
			if err != nil {
				return err
			}
			if folder, err = filepath.Abs(folder); err != nil {
				return err
			}
			s := specification{Version: "0.5.0", Kind: kind}
			for _, name := range names {
				if err := exists(filepath.Join(sockets, name, socketName)); err != nil {
					return fmt.Errorf("socket %s: %w; create it with roced socket add %[1]s (roced socket list prints existing sockets)", name, err)
				}
				s.Devices = append(s.Devices, describe(name, filepath.Join(sockets, name), folder))
			}
			e := json.NewEncoder(cmd.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(s)
		},
	}
	daemon.AddDefaultSocket(generate.Flags(), &service)
	generate.Flags().StringVar(&folder, "libraries", librariesInside, "`directory` of the C libraries on this host")
	cmd.AddCommand(generate)
	return cmd
}

// exists returns an error unless the path is a socket.
func exists(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		err = &fs.PathError{Op: "stat", Path: path, Err: unix.ENOTSOCK}
	}
	return err
}

func describe(name, socket, folder string) device {
	options := []string{"ro", "nosuid", "nodev", "bind"}
	return device{name, edits{
		Env:    []string{"ROCED_SOCKET=" + socketInside + "/" + socketName, "LD_LIBRARY_PATH=" + libraries.SearchPath(librariesInside)},
		Mounts: []mount{{socket, socketInside, options}, {folder, librariesInside, options}},
	}}
}
