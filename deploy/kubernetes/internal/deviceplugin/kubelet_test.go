// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/roced/roced/internal/waittest"
	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// kubelet implements the part of a kubelet that plugins use: it accepts registrations at its socket, and watches each
// plugin's list.
type kubelet struct {
	api.UnimplementedRegistrationServer
	t      *testing.T
	folder string
	server *grpc.Server

	mu        sync.Mutex
	requests  []*api.RegisterRequest
	plugin    api.DevicePluginClient
	list      []*api.Device
	followers sync.WaitGroup
}

func startKubelet(t *testing.T) *kubelet {
	t.Helper()
	k := &kubelet{t: t, folder: t.TempDir()}
	k.start()
	t.Cleanup(k.stop)
	return k
}

// start starts the kubelet, which first removes all sockets in the folder.
func (k *kubelet) start() {
	k.t.Helper()
	there, err := os.ReadDir(k.folder)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, name := range there {
		_ = os.RemoveAll(filepath.Join(k.folder, name.Name()))
	}
	l, err := net.Listen("unix", filepath.Join(k.folder, "kubelet.sock"))
	if err != nil {
		k.t.Fatal(err)
	}
	k.mu.Lock()
	k.list = nil // the list of the previous start
	k.mu.Unlock()
	k.server = grpc.NewServer()
	api.RegisterRegistrationServer(k.server, k)
	go func() { _ = k.server.Serve(l) }()
}

// stop stops the kubelet, and waits until the connections to the plugin have ended.
func (k *kubelet) stop() {
	k.server.Stop()
	k.followers.Wait()
}

// Register implements the kubelet's API.
func (k *kubelet) Register(_ context.Context, r *api.RegisterRequest) (*api.Empty, error) {
	c, err := dial(filepath.Join(k.folder, r.Endpoint))
	if err != nil {
		return nil, err
	}
	plugin := api.NewDevicePluginClient(c)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.requests, k.plugin = append(k.requests, r), plugin
	k.t.Cleanup(func() { _ = c.Close() })
	k.followers.Go(func() { k.follow(plugin) })
	return &api.Empty{}, nil
}

func (k *kubelet) follow(plugin api.DevicePluginClient) {
	stream, err := plugin.ListAndWatch(waittest.Guard(k.t), &api.Empty{})
	for err == nil {
		var r *api.ListAndWatchResponse
		if r, err = stream.Recv(); err == nil {
			k.mu.Lock()
			k.list = r.Devices
			k.mu.Unlock()
		}
	}
}

// registered waits until a plugin has registered a number of times.
func (k *kubelet) registered(times int) *api.RegisterRequest {
	k.t.Helper()
	var request *api.RegisterRequest
	waittest.Eventually(k.t, "the plugin registers", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(k.requests) >= times {
			request = k.requests[times-1]
		}
		return request != nil
	})
	return request
}

// await waits until the plugin reports this state for the devices.
func (k *kubelet) await(health string, devices int) {
	k.t.Helper()
	waittest.Eventually(k.t, health, func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return len(k.list) == devices && !slices.ContainsFunc(k.list, func(d *api.Device) bool { return d.Health != health })
	})
}

// allocate requests a socket for each container, by its devices.
func (k *kubelet) allocate(containers ...[]string) (*api.AllocateResponse, error) {
	r := &api.AllocateRequest{}
	for _, ids := range containers {
		r.ContainerRequests = append(r.ContainerRequests, &api.ContainerAllocateRequest{DevicesIds: ids})
	}
	k.mu.Lock()
	plugin := k.plugin
	k.mu.Unlock()
	return plugin.Allocate(waittest.Guard(k.t), r)
}
