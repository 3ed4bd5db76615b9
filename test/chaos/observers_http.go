//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

// watchHTTP watches over HTTP, like a browser, at one of the workers.
func (o *observer) watchHTTP(ctx context.Context, session int) {
	short, cancel := context.WithTimeout(ctx, time.Duration(5+o.rand.IntN(40))*time.Second)
	defer cancel()
	webs := o.all.d.webs
	err := o.stream(short, webs[o.rand.IntN(len(webs))], session)
	if err != nil && short.Err() == nil {
		_ = pause.For(ctx, 100*time.Millisecond) // the worker may be down
	}
}

// stream reads the events of one watch until it ends.
func (o *observer) stream(ctx context.Context, web string, session int) error {
	url := fmt.Sprintf("%s/v1/spaces/%s/documents/%s/watch", web, o.all.d.o.workload().Space(o.space), o.doc)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+webToken)
	// A suspended or disconnected worker does not close connections: none is reused.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return o.take(bufio.NewScanner(answer.Body), session)
}

// take records the values in a stream of events.
func (o *observer) take(lines *bufio.Scanner, session int) error {
	var kind, data string
	var revision uint64
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			var id live.Known
			if err := id.UnmarshalText([]byte(value)); err != nil {
				return err
			}
			revision = id.Revision
		case "event":
			kind = value
		case "data":
			data = value
		case "":
			if err := o.happens(kind, data, revision, session); err != nil {
				return err
			}
			kind, data = "", ""
		}
	}
	return lines.Err()
}

func (o *observer) happens(kind, data string, revision uint64, session int) error {
	switch kind {
	case "value":
		v, err := model.ParseValue([]byte(data))
		if err != nil {
			return err
		}
		o.note(session, revision, v)
	case "deleted":
		o.note(session, revision, settle.Value{})
	}
	return nil
}
