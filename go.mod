module openbot

go 1.26
