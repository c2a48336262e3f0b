package apps

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"openbot/domain"
)

// deliverTimeout ends a try to tell a receiver, its connecting included. It stays well
// below the lease of a delivery.
const deliverTimeout = 10 * time.Second

// Deliver posts one message to a receiver once, signed as Standard Webhooks wants it at the
// time of this try, under an ID that all tries share. It follows no redirect, reaches no
// forbidden address, and gives the HTTP status of the answer; its error is a
// *domain.AppError: nothing went out, or no answer came. A message to a service for people
// goes out in the same way, unsigned.
func (a *Apps) Deliver(ctx context.Context, message domain.HookMessage) (int, error) {
	if message.Unsigned {
		request, err := jsonPost(message.URL, message.Payload)
		if err != nil {
			return 0, notSent("The message was not sent: its address is broken. Set a new one", nil)
		}
		return a.post(ctx, request)
	}
	secret, err := a.options.Sealer.Open(message.Sealed, message.Organization, message.Owner)
	if err != nil {
		return 0, notSent("The message was not sent: its signing secret cannot be opened. Set a new one", err)
	}
	request, err := signedPost(string(secret), message.URL, string(message.ID), message.Payload)
	if err != nil {
		return 0, notSent("The message was not sent: its signing secret or its address is broken. Set new ones", nil)
	}
	return a.post(ctx, request)
}

func (a *Apps) post(ctx context.Context, request *http.Request) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, deliverTimeout)
	defer cancel()
	client := &http.Client{Transport: a.hooks, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request.WithContext(ctx))
	if err != nil {
		return 0, receiverError(err)
	}
	_ = response.Body.Close() // what a receiver has to say is not read
	return response.StatusCode, nil
}

// receiverError says in words why a receiver gave no answer. The address stays out of it,
// since its query may hold a key.
func receiverError(err error) *domain.AppError {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var (
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return noAnswer("The receiver did not answer in time", err)
	case errors.Is(err, errForbiddenAddress):
		return notSent("The receiver's address is private or reserved; an operator can allow private networks", errForbiddenAddress)
	case errors.As(err, &dns):
		return notSent("The name of the receiver's host cannot be resolved", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return notSent("The receiver's host refused the connection", err)
	case errors.As(err, &cert):
		return notSent("The receiver's certificate is not trusted", err)
	}
	return noAnswer("The connection to the receiver ended before it answered", err)
}

// signedPost makes a POST that is signed as Standard Webhooks wants it. Its errors may
// hold what was to be signed with, and are not for logs.
func signedPost(secret, address, id string, body []byte) (*http.Request, error) {
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, err
	}
	at := time.Now()
	signature, err := hook.Sign(id, at, body)
	if err != nil {
		return nil, err
	}
	request, err := jsonPost(address, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set(standardwebhooks.HeaderWebhookID, id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, fmt.Sprint(at.Unix()))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return request, nil
}

func jsonPost(address string, body []byte) (*http.Request, error) {
	// NopCloser keeps net/http from learning how to send the body again.
	request, err := http.NewRequest(http.MethodPost, address, io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		return nil, err
	}
	request.ContentLength = int64(len(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "openbot")
	return request, nil
}
