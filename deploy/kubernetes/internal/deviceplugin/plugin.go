// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/roced/roced/deploy/kubernetes/internal/container"
	"github.com/roced/roced/deploy/kubernetes/internal/service"
)

// Config is the configuration of a plugin.
type Config struct {
	Kubelet   string // folder of the kubelet's socket and the plugins' sockets
	Service   string // path of the service's socket, which is the same on the host
	Libraries string // folder of the C libraries on the host
	CDI       string // file of the CDI specification; if empty, containers get mounts only
	Sockets   int    // maximum number of containers of the node with a socket
}

// MaxSockets is the service's limit on sockets.
const MaxSockets = 4096

// Plugin implements the device plugin API for the kubelet.
type Plugin struct {
	api.UnimplementedDevicePluginServer
	config  Config
	service service.Service
	log     *slog.Logger
	devices map[string]container.Device
	names   []string
	health  health
}

// New creates a plugin, and writes the CDI specification of its devices for the container runtime.
func New(c Config, log *slog.Logger) (*Plugin, error) {
	if c.Sockets < 1 || c.Sockets > MaxSockets {
		return nil, fmt.Errorf("invalid number of sockets %d: use 1 to %d", c.Sockets, MaxSockets)
	}
	p := &Plugin{config: c, service: service.Service{Path: c.Service}, log: log, devices: map[string]container.Device{}, health: newHealth()}
	var all []container.Device
	for i := range c.Sockets {
		d := container.NewDevice(c.Service, fmt.Sprintf("kube-%04d", i), c.Libraries)
		p.devices[d.Name] = d
		p.names = append(p.names, d.Name)
		all = append(all, d)
	}
	if c.CDI != "" {
		if err := container.WriteSpecification(c.CDI, all...); err != nil {
			return nil, fmt.Errorf("CDI specification: %w", err)
		}
	}
	return p, nil
}

// GetDevicePluginOptions implements the plugin's API.
func (p *Plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{PreStartRequired: true}, nil
}

// ListAndWatch implements the plugin's API: it sends all devices, and again whenever their health changes.
func (p *Plugin) ListAndWatch(_ *api.Empty, to grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	for {
		healthy, changed := p.health.state()
		if err := to.Send(p.list(healthy)); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-to.Context().Done():
			return nil
		}
	}
}

func (p *Plugin) list(healthy bool) *api.ListAndWatchResponse {
	r, state := &api.ListAndWatchResponse{}, api.Unhealthy
	if healthy {
		state = api.Healthy
	}
	for _, name := range p.names {
		r.Devices = append(r.Devices, &api.Device{ID: name, Health: state})
	}
	return r
}

// Allocate implements the plugin's API: it creates a new socket for each container. It validates the whole request
// first, so that an invalid request removes no socket.
func (p *Plugin) Allocate(ctx context.Context, r *api.AllocateRequest) (*api.AllocateResponse, error) {
	var devices []container.Device
	for _, c := range r.ContainerRequests {
		d, err := p.deviceOf(c.DevicesIds)
		if err != nil {
			return nil, err
		}
		if slices.Contains(devices, d) {
			return nil, status.Errorf(codes.InvalidArgument, "device %s for two containers", d.Name)
		}
		devices = append(devices, d)
	}
	answer := &api.AllocateResponse{}
	for _, d := range devices {
		if err := p.renew(ctx, d); err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		answer.ContainerResponses = append(answer.ContainerResponses, p.describe(d))
	}
	return answer, nil
}

// deviceOf returns the device whose socket a container gets. One socket serves any number of programs, so for a request
// of several devices it returns the first one.
func (p *Plugin) deviceOf(ids []string) (d container.Device, err error) {
	if len(ids) == 0 || len(ids) > len(p.names) {
		return d, status.Errorf(codes.InvalidArgument, "invalid number of devices %d: the node has %d", len(ids), len(p.names))
	}
	for _, id := range ids {
		if _, is := p.devices[id]; !is {
			return d, status.Errorf(codes.InvalidArgument, "unknown device %.64q", id)
		}
	}
	return p.devices[slices.Min(ids)], nil
}

// renew removes the socket of the previous container, and creates a new one.
func (p *Plugin) renew(ctx context.Context, d container.Device) error {
	if err := p.service.RemoveSocket(ctx, d.Name); err != nil {
		return err
	}
	_, err := p.service.AddSocket(ctx, d.Name)
	return err
}

// describe returns the instructions for the container runtime. Runtimes with CDI replace mounts by those of the
// specification at the same path; others use these mounts.
func (p *Plugin) describe(d container.Device) *api.ContainerAllocateResponse {
	r := &api.ContainerAllocateResponse{Envs: container.Env()}
	for _, m := range d.Mounts() {
		r.Mounts = append(r.Mounts, &api.Mount{HostPath: m.Host, ContainerPath: m.Container, ReadOnly: true})
	}
	if p.config.CDI != "" {
		r.CdiDevices = []*api.CDIDevice{{Name: d.ID()}}
	}
	return r
}

// PreStartContainer implements the plugin's API: it creates the socket unless it exists. The kubelet keeps allocations
// across a reboot, while /run is lost.
func (p *Plugin) PreStartContainer(ctx context.Context, r *api.PreStartContainerRequest) (*api.PreStartContainerResponse, error) {
	d, err := p.deviceOf(r.DevicesIds)
	if err != nil {
		return nil, err
	}
	if _, err := p.service.AddSocket(ctx, d.Name); err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &api.PreStartContainerResponse{}, nil
}
