// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/roced/roced/deploy/kubernetes/internal/container"
)

// socketName is the name of the plugin's socket in the kubelet's folder.
const socketName = "roced.sock"

// callTimeout is the timeout of a call to the kubelet or the plugin.
const callTimeout = 10 * time.Second

// Run serves the kubelet until ctx is done. A restarted kubelet removes the sockets of all plugins, so the plugin
// registers again.
func (p *Plugin) Run(ctx context.Context) {
	var following sync.WaitGroup
	following.Go(func() { p.follow(ctx) })
	defer following.Wait()
	said := ""
	for ctx.Err() == nil {
		err := p.serve(ctx)
		if err != nil && err.Error() != said { // logs a repeated error once
			said = err.Error()
			p.log.Warn("registration with the kubelet failed; retrying", "error", err)
		} else if err == nil {
			said = ""
		}
		pause(ctx)
	}
}

// serve registers with the kubelet, and returns when the kubelet has been restarted.
func (p *Plugin) serve(ctx context.Context) error {
	kubelet, err := os.Stat(p.path("kubelet.sock"))
	if err != nil {
		return err
	}
	own := p.path(socketName)
	if err := os.Remove(own); err != nil && !errors.Is(err, fs.ErrNotExist) { // socket of a killed plugin
		return err
	}
	listener, err := net.Listen("unix", own)
	if err != nil {
		return err
	}
	bound, err := os.Stat(own)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	defer serving.Wait()
	defer server.Stop()
	if err := p.register(ctx); err != nil {
		return err
	}
	p.log.Info("registered with the kubelet", "resource", container.Kind, "devices", len(p.names))
	for pause(ctx) && same(p.path("kubelet.sock"), kubelet) && same(own, bound) {
	}
	return nil
}

func (p *Plugin) path(name string) string { return filepath.Join(p.config.Kubelet, name) }

// same reports whether a path still refers to the same file. It compares the time too, since inode numbers are reused.
func same(path string, before fs.FileInfo) bool {
	now, err := os.Stat(path)
	return err == nil && os.SameFile(now, before) && now.ModTime().Equal(before.ModTime())
}

func (p *Plugin) register(ctx context.Context) error {
	kubelet, err := dial(p.path("kubelet.sock"))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = api.NewRegistrationClient(kubelet).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: socketName, ResourceName: container.Kind,
		Options: &api.DevicePluginOptions{PreStartRequired: true},
	})
	if err != nil {
		return fmt.Errorf("register with the kubelet: %w", err)
	}
	return nil
}

func dial(path string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// Check returns an error unless the plugin in this kubelet folder responds. It is for probes.
func Check(ctx context.Context, kubelet string) error {
	plugin, err := dial(filepath.Join(kubelet, socketName))
	if err != nil {
		return err
	}
	defer plugin.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = api.NewDevicePluginClient(plugin).GetDevicePluginOptions(ctx, &api.Empty{})
	return err
}
