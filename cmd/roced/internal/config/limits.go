// SPDX-License-Identifier: Apache-2.0

package config

// Limits are the maximum resources of one user, for all its programs together.
type Limits struct {
	Clients       int // connections
	PDs           int
	MRs           int
	CQs           int
	QPs           int
	AHs           int
	SRQs          int
	XRCDs         int // XRC domains
	Channels      int // completion channels
	Memberships   int
	Attachments   int
	IDs           int    // of connection management
	EventChannels int    // of ids
	Memory        uint64 // bytes of queues and regions
	TotalMemory   uint64 // bytes of all users; 0: half of the available memory
}

// Except returns a copy of l in which the values of given that are not 0 replace those of l.
func (l Limits) Except(given Limits) Limits {
	for _, one := range limitFields {
		if n := *one.field(&given); n != 0 {
			*one.field(&l) = n
		}
	}
	if given.Memory != 0 {
		l.Memory = given.Memory
	}
	return l
}

// limitFields lists the numbers of Limits.
var limitFields = []struct {
	name  string
	field func(*Limits) *int
}{
	{"clients", func(l *Limits) *int { return &l.Clients }},
	{"pd", func(l *Limits) *int { return &l.PDs }},
	{"mr", func(l *Limits) *int { return &l.MRs }},
	{"cq", func(l *Limits) *int { return &l.CQs }},
	{"qp", func(l *Limits) *int { return &l.QPs }},
	{"ah", func(l *Limits) *int { return &l.AHs }},
	{"srq", func(l *Limits) *int { return &l.SRQs }},
	{"xrcd", func(l *Limits) *int { return &l.XRCDs }},
	{"channels", func(l *Limits) *int { return &l.Channels }},
	{"memberships", func(l *Limits) *int { return &l.Memberships }},
	{"attachments", func(l *Limits) *int { return &l.Attachments }},
	{"ids", func(l *Limits) *int { return &l.IDs }},
	{"event_channels", func(l *Limits) *int { return &l.EventChannels }},
}

// limits returns the keys of Limits. least is the minimum value: 1, or 0 if 0 has a special meaning.
func limits(table string, least int, of func(*Config) *Limits) (list []key) {
	for _, one := range limitFields {
		list = append(list, number(table+one.name, least, maxObjects, func(c *Config) *int { return one.field(of(c)) }))
	}
	return append(list, size(table+"memory", uint64(least)<<20, maxMemory, func(c *Config) *uint64 { return &of(c).Memory }))
}
