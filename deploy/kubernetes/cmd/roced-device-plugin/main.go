// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/roced/roced/deploy/kubernetes/internal/deviceplugin"
	"github.com/roced/roced/deploy/kubernetes/internal/libraries"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const usage = `usage: roced-device-plugin [flags]        provide sockets of roced's service to containers of this node
       roced-device-plugin install FOLDER    copy roced's C libraries to the folder, and exit
       roced-device-plugin check             check that the plugin responds, for probes
flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "roced-device-plugin:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c := deviceplugin.Config{}
	var from string
	f := flag.NewFlagSet("roced-device-plugin", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), usage); f.PrintDefaults() }
	f.StringVar(&c.Kubelet, "kubelet", api.DevicePluginPath, "`folder` of the kubelet's socket for device plugins")
	f.StringVar(&c.Service, "service", "/run/roced/roced.sock", "`path` of the service's socket, the same here and on the host")
	f.StringVar(&c.Libraries, "libraries", "/var/lib/roced", "`folder` of the C libraries, the same here and on the host; not mounted noexec, as /run often is")
	f.StringVar(&from, "install", libraries.Default, "`folder` from which the C libraries are copied at start; empty if they exist")
	f.StringVar(&c.CDI, "cdi", "/var/run/cdi/roced.dev-verbs.json", "`file` of the CDI specification; if empty, containers get mounts only")
	f.IntVar(&c.Sockets, "sockets", 64, "maximum number of containers of this node with a socket")
	if err := f.Parse(args); err != nil {
		return err
	}
	switch {
	case f.Arg(0) == "install" && f.NArg() == 2:
		return libraries.Install(from, f.Arg(1))
	case f.Arg(0) == "check" && f.NArg() == 1:
		return deviceplugin.Check(ctx, c.Kubelet)
	case f.NArg() > 0:
		return fmt.Errorf("unexpected arguments %q; see -h", f.Args())
	}
	if from != "" {
		if err := libraries.Install(from, c.Libraries); err != nil {
			return err
		}
	}
	p, err := deviceplugin.New(c, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	p.Run(ctx)
	return nil
}
