//go:build linux

package hca

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// AllocNullMR implements provider.Provider. Peers may do nothing with the region.
func (s regions) AllocNullMR(r provider.AllocNullMRRequest) (provider.MRGrant, error) {
	return s.register(r.PD, &mr{null: true, access: verbs.AccessLocalWrite})
}
