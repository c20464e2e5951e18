// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/roced/roced/deploy/kubernetes/internal/container"
	"github.com/roced/roced/deploy/kubernetes/internal/service"
)

// Name is the name of the driver, which device classes refer to.
const Name = "roced.dev"

// Config is the configuration of a driver.
type Config struct {
	Node      string // name of the node
	Plugins   string // folder of the kubelet for plugins' sockets
	Registry  string // folder of the kubelet for the registration of plugins
	Service   string // path of the service's socket, which is the same on the host
	Libraries string // folder of the C libraries on the host
	CDI       string // folder of CDI specifications
	Sockets   int    // maximum number of claims of the node
}

// maxSockets is the service's limit on sockets.
const maxSockets = 4096

// driver implements kubeletplugin.DRAPlugin.
type driver struct {
	config  Config
	service service.Service
	log     *slog.Logger
	failed  context.CancelCauseFunc
}

// Run serves the kubelet until ctx is done or a permanent error occurs.
func Run(ctx context.Context, c Config, client kubernetes.Interface, log *slog.Logger) error {
	if c.Sockets < 1 || c.Sockets > maxSockets || c.Node == "" {
		return fmt.Errorf("invalid node %q or number of sockets %d: set a name, and 1 to %d sockets", c.Node, c.Sockets, maxSockets)
	}
	own := filepath.Join(c.Plugins, Name)
	if err := os.MkdirAll(own, 0o750); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d := &driver{c, service.Service{Path: c.Service}, log, cancel}
	helper, err := kubeletplugin.Start(ctx, d,
		kubeletplugin.DriverName(Name), kubeletplugin.NodeName(c.Node), kubeletplugin.KubeClient(client),
		kubeletplugin.RegistrarDirectoryPath(c.Registry), kubeletplugin.PluginDataDirectoryPath(own), kubeletplugin.HealthService(false))
	if err != nil {
		return err
	}
	defer helper.Stop()
	if err := helper.PublishResources(ctx, d.resources()); err != nil && ctx.Err() == nil {
		return err
	}
	log.Info("serving the kubelet", "driver", Name, "devices", c.Sockets)
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// resources returns the node's devices.
func (d *driver) resources() resourceslice.DriverResources {
	var slices []resourceslice.Slice
	for i := range d.config.Sockets {
		if i%resourceapi.ResourceSliceMaxDevices == 0 {
			slices = append(slices, resourceslice.Slice{})
		}
		last := &slices[len(slices)-1]
		last.Devices = append(last.Devices, resourceapi.Device{Name: fmt.Sprintf("verbs-%04d", i)})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.config.Node: {Slices: slices}}}
}

// aClaim matches the UID of a claim, which becomes part of file names.
var aClaim = regexp.MustCompile(`^[0-9a-zA-Z][0-9a-zA-Z-]{0,49}$`)

// deviceOf returns the access of containers with the claim, and the file for the container runtime.
func (d *driver) deviceOf(claim types.UID) (device container.Device, specification string, err error) {
	if !aClaim.MatchString(string(claim)) {
		return device, "", fmt.Errorf("%.64q is not the UID of a claim", claim)
	}
	device = container.NewDevice(d.config.Service, "claim-"+string(claim), d.config.Libraries)
	return device, filepath.Join(d.config.CDI, Name+"-"+device.Name+".json"), nil
}

// PrepareResourceClaims implements kubeletplugin.DRAPlugin.
func (d *driver) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		devices, err := d.prepare(ctx, claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return results, nil
}

// prepare creates a claim's socket unless it exists.
func (d *driver) prepare(ctx context.Context, claim *resourceapi.ResourceClaim) (devices []kubeletplugin.Device, err error) {
	own, specification, err := d.deviceOf(claim.UID)
	if err != nil {
		return nil, err
	}
	for _, r := range claim.Status.Allocation.Devices.Results {
		if r.Driver != Name {
			continue
		}
		if r.Pool != d.config.Node {
			return nil, fmt.Errorf("claim %s has a device of node %s", claim.Name, r.Pool)
		}
		devices = append(devices, kubeletplugin.Device{
			Requests: []string{r.Request}, PoolName: r.Pool, DeviceName: r.Device, CDIDeviceIDs: []string{own.ID()}, ShareID: r.ShareID,
		})
	}
	if len(devices) == 0 {
		return nil, fmt.Errorf("claim %s has no device of %s", claim.Name, Name)
	}
	if _, err := d.service.AddSocket(ctx, own.Name); err != nil {
		return nil, err
	}
	return devices, container.WriteSpecification(specification, own)
}

// UnprepareResourceClaims implements kubeletplugin.DRAPlugin.
func (d *driver) UnprepareResourceClaims(ctx context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = d.unprepare(ctx, claim.UID)
	}
	return results, nil
}

// unprepare removes a claim's socket. After a failure the kubelet repeats the call.
func (d *driver) unprepare(ctx context.Context, claim types.UID) error {
	device, specification, err := d.deviceOf(claim)
	if err != nil {
		return err
	}
	if err := os.Remove(specification); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.service.RemoveSocket(ctx, device.Name)
}

// HandleError implements kubeletplugin.DRAPlugin.
func (d *driver) HandleError(_ context.Context, err error, what string) {
	d.log.Error(what, "error", err)
	if !errors.Is(err, kubeletplugin.ErrRecoverable) {
		d.failed(fmt.Errorf("%s: %w", what, err))
	}
}

// WatchHealthStatus implements kubeletplugin.DRAPlugin. Unprepared claims report their own errors.
func (d *driver) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}
