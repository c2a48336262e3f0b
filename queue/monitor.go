package queue

import (
	"fmt"
	"net/http"

	"github.com/hibiken/asynqmon"
)

// Monitor gives asynqmon's pages for the path under which they are served, e.g.
// "/monitoring", without a slash at its end. With readOnly nothing can be changed.
// It has no login and takes requests from other sites: the caller must guard it. Tasks
// show what they name, never what anybody wrote.
func (q *Queue) Monitor(rootPath string, readOnly bool) http.Handler {
	pages := asynqmon.New(asynqmon.Options{
		RootPath:         rootPath,
		RedisConnOpt:     q.address,
		ReadOnly:         readOnly,
		PayloadFormatter: asynqmon.PayloadFormatterFunc(showPayload),
		ResultFormatter:  asynqmon.ResultFormatterFunc(func(string, []byte) string { return "" }),
	})
	q.onClose(pages.Close)
	return pages
}

// showPayload says which row a task names.
func showPayload(_ string, payload []byte) string {
	task, err := decode(payload, "")
	if err != nil {
		return "unreadable"
	}
	return fmt.Sprintf("%s %s revision %d", task.Kind, task.Subject, task.Revision)
}
