package api

import "github.com/gin-gonic/gin"

func (s *server) pages(r *gin.Engine) error { return nil }
