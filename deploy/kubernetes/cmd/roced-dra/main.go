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

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/roced/roced/deploy/kubernetes/internal/dra"
	"github.com/roced/roced/deploy/kubernetes/internal/libraries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "roced-dra:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c := dra.Config{}
	var from string
	f := flag.NewFlagSet("roced-dra", flag.ContinueOnError)
	f.StringVar(&c.Node, "node", os.Getenv("NODE_NAME"), "`name` of this node (default: the value of NODE_NAME)")
	f.StringVar(&c.Plugins, "plugins", kubeletplugin.KubeletPluginsDir, "`folder` of the kubelet for plugins' sockets")
	f.StringVar(&c.Registry, "registry", kubeletplugin.KubeletRegistryDir, "`folder` of the kubelet for the registration of plugins")
	f.StringVar(&c.Service, "service", "/run/roced/roced.sock", "`path` of the service's socket, the same here and on the host")
	f.StringVar(&c.Libraries, "libraries", "/var/lib/roced", "`folder` of the C libraries, the same here and on the host; not mounted noexec, as /run often is")
	f.StringVar(&from, "install", libraries.Default, "`folder` from which the C libraries are copied at start; empty if they exist")
	f.StringVar(&c.CDI, "cdi", "/var/run/cdi", "`folder` of CDI specifications")
	f.IntVar(&c.Sockets, "sockets", 64, "maximum number of claims of this node with a socket")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected arguments %q; see -h", f.Args())
	}
	if from != "" {
		if err := libraries.Install(from, c.Libraries); err != nil {
			return err
		}
	}
	cluster, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return err
	}
	return dra.Run(ctx, c, client, slog.New(slog.NewTextHandler(os.Stderr, nil)))
}
