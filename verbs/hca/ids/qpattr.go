//go:build linux

package ids

import (
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/provider"
)

// InitIDQPAttr carries out provider.InitIDQPAttr.
func (s *Session) InitIDQPAttr(r provider.InitIDQPAttrRequest) (grant provider.InitIDQPAttrGrant, err error) {
	err = s.withID(r.ID, func(i *ID) (err error) {
		grant, err = i.qpAttr(r.State)
		return err
	})
	return grant, err
}

// qpAttr are the attributes by which a queue pair of the id comes to a state.
func (i *ID) qpAttr(state verbs.QPState) (grant provider.InitIDQPAttrGrant, err error) {
	if !i.onDevice() {
		return grant, fmt.Errorf("%w: the id is not bound to a device: bind it to an address, or resolve one", verbs.ErrInvalid)
	}
	attr := i.datagramAttr
	if i.connects() {
		attr = i.connectedAttr
	}
	if grant, err = attr(state); err != nil {
		return provider.InitIDQPAttrGrant{}, err
	}
	grant.Attr.State = state
	grant.Mask |= verbs.QPAttrState
	return grant, nil
}

func (i *ID) datagramAttr(state verbs.QPState) (grant provider.InitIDQPAttrGrant, err error) {
	switch state {
	case verbs.QPStateInit:
		grant.Attr.Port, grant.Attr.QKey = 1, i.qkey
		grant.Mask = verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrQKey
	case verbs.QPStateRTR:
	case verbs.QPStateRTS:
		grant.Mask = verbs.QPAttrSQPSN
	default:
		err = noAttributes(state)
	}
	return grant, err
}

func noAttributes(state verbs.QPState) error {
	return fmt.Errorf("%w: attributes for %v; there are some for INIT, RTR and RTS", verbs.ErrInvalid, state)
}

// connectedAttr are those of a connection. Before both sides have named their queue pairs, there are
// attributes for INIT alone.
func (i *ID) connectedAttr(state verbs.QPState) (grant provider.InitIDQPAttrGrant, err error) {
	terms, agreed := i.terms()
	switch {
	case state == verbs.QPStateInit:
		grant.Attr.Port = 1
		if agreed {
			grant.Attr.AccessFlags = accessFor(terms.ResponderResources)
		}
		grant.Mask = verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrAccessFlags
	case state != verbs.QPStateRTR && state != verbs.QPStateRTS:
		err = noAttributes(state)
	case !agreed:
		err = fmt.Errorf("%w: attributes for %v: there is no connection, or the peer has not answered yet", verbs.ErrInvalid, state)
	case state == verbs.QPStateRTR:
		grant = i.attrToReceive(&terms)
	default:
		grant = attrToSend(&terms)
		if i.ackSet {
			grant.Attr.Timeout = i.ackTimeout
		}
	}
	switch i.kind {
	case verbs.QPTypeUC:
		grant.Mask &^= ofReliable
	case verbs.QPTypeXRCSend:
		grant.Mask &^= ofResponder
	case verbs.QPTypeXRCRecv:
		grant.Mask &^= ofRequester
	}
	return grant, err
}

// The attributes of responders and of requesters alone: an XRC queue pair is one of them.
const (
	ofResponder = verbs.QPAttrMaxDestRDAtomic | verbs.QPAttrMinRNRTimer
	ofRequester = verbs.QPAttrRetryCnt | verbs.QPAttrRNRRetry | verbs.QPAttrMaxQPRDAtomic
)

// ofReliable are the attributes that unreliable connections do not have: nothing is acknowledged, or asked for.
const ofReliable = verbs.QPAttrMaxDestRDAtomic | verbs.QPAttrMinRNRTimer | verbs.QPAttrTimeout | verbs.QPAttrRetryCnt | verbs.QPAttrRNRRetry | verbs.QPAttrMaxQPRDAtomic

// terms are those of the id's connection, with no more READs and atomics at once than the card has; agreed if
// they are complete.
func (i *ID) terms() (terms cm.Terms, agreed bool) {
	if i.connection != nil {
		i.session.manager.With(func(*cm.Manager, time.Time) { terms, agreed = i.connection.Terms, i.connection.Agreed() })
	}
	terms.ResponderResources, terms.InitiatorDepth = min(terms.ResponderResources, MaxRDAtomic), min(terms.InitiatorDepth, MaxRDAtomic)
	return terms, agreed
}

// accessFor is what a peer may do, as the kernel's rdma_cm has it.
func accessFor(responderResources uint8) verbs.AccessFlags {
	if responderResources == 0 {
		return verbs.AccessRemoteWrite
	}
	return verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic
}

// attrToReceive is what a queue pair needs to receive.
func (i *ID) attrToReceive(t *cm.Terms) (grant provider.InitIDQPAttrGrant) {
	a := &grant.Attr
	a.AHAttr = i.session.manager.Card.AHAttr(i.ends, t.Path.TrafficClass)
	if i.given != nil {
		a.AHAttr.SL = i.given.SL
	}
	a.AHAttr.GRH.FlowLabel, a.AHAttr.GRH.HopLimit = t.Path.FlowLabel, t.Path.HopLimit
	a.PathMTU, a.DestQPN, a.RQPSN, a.MaxDestRDAtomic = t.MTU, t.RemoteQPN, t.RQPSN, t.ResponderResources
	grant.Mask = verbs.QPAttrAV | verbs.QPAttrPathMTU | verbs.QPAttrDestQPN | verbs.QPAttrRQPSN | verbs.QPAttrMaxDestRDAtomic | verbs.QPAttrMinRNRTimer
	return grant
}

// attrToSend is what it needs to send, too.
func attrToSend(t *cm.Terms) (grant provider.InitIDQPAttrGrant) {
	a := &grant.Attr
	a.SQPSN, a.Timeout, a.RetryCnt, a.RNRRetry, a.MaxRDAtomic = t.SQPSN, t.AckTimeout, t.RetryCount, t.RNRRetryCount, t.InitiatorDepth
	grant.Mask = verbs.QPAttrSQPSN | verbs.QPAttrTimeout | verbs.QPAttrRetryCnt | verbs.QPAttrRNRRetry | verbs.QPAttrMaxQPRDAtomic
	return grant
}
