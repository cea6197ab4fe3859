package receive

import (
	"fmt"
	"net/http"

	"github.com/rollway/rollway/collector/normalize"
)

// DurabilityHeader asks for a durability, buffered or synced, in a request, and
// tells in an answer of 2xx which one its events have.
const DurabilityHeader = "X-Durability"

// Values of DurabilityHeader, shared by all answers.
var (
	buffered = []string{"buffered"}
	synced   = []string{"synced"}
)

// readAsk reads what the headers ask of the store.
func readAsk(ask *normalize.Ask, h http.Header) failure {
	switch values := h[DurabilityHeader]; {
	case len(values) == 0:
	case len(values) == 1 && (values[0] == buffered[0] || values[0] == synced[0]):
		ask.Durability = values[0]
	default:
		return failure{code: http.StatusBadRequest, close: true, text: fmt.Sprintf("%s %.50q is neither buffered nor synced; nothing was stored", DurabilityHeader, h.Get(DurabilityHeader))}
	}
	return failure{}
}

// answerAsk tells in an answer of 2xx what was done about ask.
func answerAsk(h http.Header, ask *normalize.Ask) {
	switch ask.Durability {
	case buffered[0]:
		h[DurabilityHeader] = buffered
	case synced[0]:
		h[DurabilityHeader] = synced
	}
}
