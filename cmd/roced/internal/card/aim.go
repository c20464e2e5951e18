package card

import (
	"context"
	"fmt"
	"slices"

	"github.com/roced/roced/verbs"
)

// Attach receives from now on what is sent to a group.
func (e *Endpoint) Attach(group *verbs.Membership) error {
	if err := e.QP.AttachMcast(group.MGID(), group.MLID()); err != nil {
		return err
	}
	e.groups = append(e.groups, group)
	return nil
}

// Detach undoes the attach to a group.
func (e *Endpoint) Detach(group *verbs.Membership) error {
	e.groups = slices.DeleteFunc(e.groups, func(g *verbs.Membership) bool { return g == group })
	return e.QP.DetachMcast(group.MGID(), group.MLID())
}

// Aim sends from now on to a queue pair at a GID, from a line of the GID table.
// Nothing is being sent.
func (e *Endpoint) Aim(source int, gid verbs.GID, qpn verbs.QPN) error {
	ah, err := e.pd.CreateAH(context.Background(), &verbs.AHAttr{Port: Port, GRH: verbs.GlobalRoute{SGIDIndex: source, DGID: gid, TrafficClass: e.trafficClass}})
	if err != nil {
		return fmt.Errorf("address of the peer, %v: %w", gid.Addr(), err)
	}
	if e.ah != nil {
		err = e.ah.Close()
	}
	e.ah, e.peerQPN, e.peerGID = ah, qpn, gid
	for i := range e.sends {
		e.sends[i].AH, e.sends[i].RemoteQPN = ah, qpn
	}
	return err
}

// IsFromPeer says whether a message is from where the endpoint aims.
func (e *Endpoint) IsFromPeer(wc *verbs.WC) bool {
	grh, _ := wc.Payload(e.RecvBuffer(wc))
	return wc.SrcQP == e.peerQPN && grh.SGID() == e.peerGID
}
