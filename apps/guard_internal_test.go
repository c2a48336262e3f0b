package apps

import (
	"errors"
	"testing"
)

// The dial itself is refused too, whatever a name resolves to.
func TestControlRefusesLinkLocalAlways(t *testing.T) {
	for _, allowPrivate := range []bool{false, true} {
		control := guardedDialer(allowPrivate).Control
		for _, address := range []string{
			"169.254.169.254:80", "[fe80::1]:80", "[fe80::1%eth0]:80", "0.0.0.0:80", "[::]:80", "224.0.0.1:80", "[ff02::1]:80",
			"[fd00:ec2::254]:80", "[::ffff:169.254.169.254]:80", "[64:ff9b::a9fe:a9fe]:80", "[2002:a9fe:a9fe::]:80", "nonsense",
		} {
			if err := control("tcp", address, nil); !errors.Is(err, errForbiddenAddress) {
				t.Errorf("private %v: %s gives %v", allowPrivate, address, err)
			}
		}
		for _, address := range []string{"127.0.0.1:80", "10.0.0.1:80", "[fd00::1]:80", "100.64.0.1:80"} {
			if err := control("tcp4", address, nil); (err == nil) != allowPrivate {
				t.Errorf("private %v: %s gives %v", allowPrivate, address, err)
			}
		}
		if err := control("tcp4", "93.184.215.14:443", nil); err != nil {
			t.Errorf("private %v: a public address gives %v", allowPrivate, err)
		}
	}
}
