// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/config"
)

// reload reads the configuration again. If it is invalid, nothing changes.
func (s *service) reload(ctx context.Context) {
	s.notify.Reloading()
	c, err := s.load()
	if err != nil {
		s.logErrors(err)
		s.notify.Ready("invalid configuration, see the log; " + s.describe())
		return
	}
	later := s.apply(ctx, c)
	if len(later) > 0 {
		s.log.Warn("these changes require a restart", "keys", strings.Join(later, ", "))
	}
	s.log.Info("configuration reloaded")
	s.status = s.describe()
	s.notify.Ready(s.status)
}

// logErrors logs a line for each error of the configuration.
func (s *service) logErrors(err error) {
	var list config.Errors
	if !errors.As(err, &list) {
		s.log.Error("invalid configuration; the previous one remains in use", "error", err)
	}
	for _, m := range list {
		s.log.Error("invalid configuration; the previous one remains in use", "error", m.String())
	}
}

// apply makes the changes that are possible at run time and returns the keys that require a restart. Those
// keep their previous values, so that the next reload reports them again.
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
			s.log.Error("cannot serve metrics", "error", err)
		}
		s.config.Metrics.Listen = c.Metrics.Listen
	}
	if c.Metrics.Hosts != s.config.Metrics.Hosts {
		later = append(later, "metrics.hosts")
	}
	return append(later, s.applyDevices(ctx, c.Devices)...)
}

// applyDevices adds new devices, removes unlisted ones and returns the keys of other changes.
func (s *service) applyDevices(ctx context.Context, wanted []config.Device) (later []string) {
	for _, r := range slices.Clone(s.devices.all) {
		if !slices.ContainsFunc(wanted, func(d config.Device) bool { return same(d, r.Config()) }) {
			s.log.Info("removing device", "device", r.Name())
			if err := s.devices.remove(r); err != nil {
				s.log.Error("cannot remove device", "device", r.Name(), "error", err)
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
			s.log.Error("cannot add device", "device", d.Name, "error", err)
		}
	}
	return later
}

// same reports whether a and b are the same device, possibly with different settings.
func same(a, b config.Device) bool { return a.Interface == b.Interface && a.Name == b.Name }

// listenForMetrics serves metrics at an address instead of the previous one; an empty address disables them.
func (s *service) listenForMetrics(address string) error {
	if err := s.metrics.StopOwn(); err != nil {
		s.log.Warn("cannot close the metrics socket", "error", err)
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
