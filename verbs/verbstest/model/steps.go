// SPDX-License-Identifier: Apache-2.0

package model

// modelStep is a kind of step with its relative frequency. A step without a suitable object has no effect.
type modelStep struct {
	weight int
	do     func(s *side)
}

var modelSteps = []modelStep{
	{2, (*side).createPD}, {2, (*side).closePD},
	{4, (*side).createMR}, {2, (*side).closeMR}, {2, (*side).reregMR},
	{5, (*side).createCQ}, {2, (*side).closeCQ},
	{10, (*side).createAH}, {3, (*side).closeAH}, {1, (*side).refuseAH},
	{8, (*side).createQP}, {2, (*side).closeQP}, {1, (*side).refuseQP}, {2, (*side).closeOverrun},
	{60, (*side).advance}, {12, (*side).modify}, {2, (*side).query},
	{6, (*side).createSRQ}, {2, (*side).closeSRQ}, {30, (*side).postSRQ}, {6, (*side).modifySRQ},
	{4, (*side).resizeCQ}, {6, (*side).peek}, {4, (*side).modifyAH},
	{10, (*side).attach}, {2, (*side).detach},
	{80, (*side).postSend}, {35, (*side).postRecv}, {70, (*side).poll},
	{20, (*side).exchange}, {4, (*side).sign}, {15, (*side).exchangeXRC}, {4, (*side).write}, {2, (*side).readEvents}, {2, (*side).audit},
}

var allWeights = func() (sum int) {
	for _, step := range modelSteps {
		sum += step.weight
	}
	return sum
}()

// pick returns a random step.
func (p *player) pick() func(s *side) {
	at := p.random.IntN(allWeights)
	for _, step := range modelSteps {
		if at -= step.weight; at < 0 {
			return step.do
		}
	}
	panic("unreachable")
}
