package run

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/config"
)

// reload reads the configuration again. With mistakes in it, everything stays as it is.
func (s *service) reload(ctx context.Context) {
	s.notify.Reloading()
	c, err := s.load()
	if err != nil {
		s.logMistakes(err)
		s.notify.Ready("the configuration is wrong, see the log; " + s.describe())
		return
	}
	later := s.apply(ctx, c)
	if len(later) > 0 {
		s.log.Warn("these changes need a restart", "keys", strings.Join(later, ", "))
	}
	s.log.Info("the configuration was read again")
	s.status = s.describe()
	s.notify.Ready(s.status)
}

// logMistakes logs a line for each mistake.
func (s *service) logMistakes(err error) {
	var mistakes config.Mistakes
	if !errors.As(err, &mistakes) {
		s.log.Error("the configuration is wrong; the former stays", "error", err)
	}
	for _, m := range mistakes {
		s.log.Error("the configuration is wrong; the former stays", "error", m.String())
	}
}

// apply changes what can be changed, and gives the keys that need a restart. These keep their former
// values, so that they are named again at the next reload.
func (s *service) apply(ctx context.Context, c *config.Config) (later []string) {
	s.server.SetLimits(limits(c))
	s.level.Set(c.LogLevel)
	s.config.Limits, s.config.ContainerLimits, s.config.LogLevel = c.Limits, c.ContainerLimits, c.LogLevel
	if c.Access != s.config.Access {
		later = append(later, "access")
	}
	if c.StateDir != s.config.StateDir {
		later = append(later, "state_dir")
	}
	if c.Namespaces != s.config.Namespaces {
		later = append(later, "namespaces")
	}
	if c.Socket != s.config.Socket && s.own != nil {
		later = append(later, "socket")
	}
	if c.Metrics.Listen != s.config.Metrics.Listen {
		if err := s.listenForMetrics(c.Metrics.Listen); err != nil {
			s.log.Error("no metrics", "error", err)
		}
		s.config.Metrics.Listen = c.Metrics.Listen
	}
	if c.Metrics.Hosts != s.config.Metrics.Hosts {
		later = append(later, "metrics.hosts")
	}
	return append(later, s.applyDevices(ctx, c.Devices)...)
}

// applyDevices opens those that are new, closes those that are not wanted any more, and gives those
// with other keys.
func (s *service) applyDevices(ctx context.Context, wanted []config.Device) (later []string) {
	for _, r := range slices.Clone(s.devices.all) {
		if !slices.ContainsFunc(wanted, func(d config.Device) bool { return same(d, r.Config()) }) {
			s.log.Info("the device is removed", "device", r.Name())
			if err := s.devices.remove(r); err != nil {
				s.log.Error("the device cannot be removed", "device", r.Name(), "error", err)
			}
		}
	}
	for _, d := range wanted {
		at := slices.IndexFunc(s.devices.all, func(r *running) bool { return same(d, r.Config()) })
		if at >= 0 {
			for _, key := range config.Differences(s.devices.all[at].Config(), d) {
				later = append(later, d.Name+"."+key)
			}
		} else if err := s.devices.add(ctx, d); err != nil {
			s.log.Error("the device cannot be added", "device", d.Name, "error", err)
		}
	}
	return later
}

// same says whether two are the same device, whatever else their keys say.
func same(a, b config.Device) bool { return a.Interface == b.Interface && a.Name == b.Name }

// listenForMetrics serves metrics at an address, and no longer at the former one; at none if it is
// empty.
func (s *service) listenForMetrics(address string) error {
	if err := s.metrics.StopOwn(); err != nil {
		s.log.Warn("metrics", "error", err)
	}
	if address == "" {
		return nil
	}
	path, isPath := strings.CutPrefix(address, "unix:")
	if isPath {
		own, err := listenUnix("unix", config.Socket{Path: path, Mode: s.config.Socket.Mode, Group: s.config.Socket.Group})
		if err != nil {
			return err
		}
		s.metrics.ServeOwn(own)
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s.metrics.ServeOwn(listener)
	return nil
}
