package star

// spaceBuiltins are the builtins that use the space: they register, read, write and send.
var spaceBuiltins = builtinTable{
	"cell": func(inst *instance) builtinFunc { return inst.cell }, "doc": func(inst *instance) builtinFunc { return inst.cell },
	"handle": func(inst *instance) builtinFunc { return inst.handle }, "compute": func(inst *instance) builtinFunc { return inst.compute },
	"effect": func(inst *instance) builtinFunc { return inst.effect }, "each": func(inst *instance) builtinFunc { return inst.each },
	"cron": func(inst *instance) builtinFunc { return inst.cron }, "send": func(inst *instance) builtinFunc { return inst.send },
	"set_timer": func(inst *instance) builtinFunc { return inst.setTimer }, "cancel_timer": func(inst *instance) builtinFunc { return inst.cancelTimer },
	"timer": func(inst *instance) builtinFunc { return inst.timer }, "now": func(inst *instance) builtinFunc { return inst.now },
	"event": func(inst *instance) builtinFunc { return inst.event }, "space": func(inst *instance) builtinFunc { return inst.spaceName },
	"log": func(inst *instance) builtinFunc { return inst.log }, "link": func(inst *instance) builtinFunc { return inst.link },
	"follow": func(inst *instance) builtinFunc { return inst.follow }, "link_at": func(inst *instance) builtinFunc { return inst.linkAt },
	"documents": func(inst *instance) builtinFunc { return inst.documents }, "spaces": func(inst *instance) builtinFunc { return inst.spaces },
	"http_get": func(*instance) builtinFunc { return httpGet }, "http_post": func(*instance) builtinFunc { return httpPost },
	"rfc3339": func(inst *instance) builtinFunc { return rfc3339 }, "time_of": func(inst *instance) builtinFunc { return timeOf },
	"action": func(inst *instance) builtinFunc { return inst.action }, "start_task": func(inst *instance) builtinFunc { return inst.startTask },
	"cancel_task": func(inst *instance) builtinFunc { return inst.cancelTask }, "forget_task": func(inst *instance) builtinFunc { return inst.forgetTask },
	"workflow": func(inst *instance) builtinFunc { return inst.workflow }, "start_workflow": func(inst *instance) builtinFunc { return inst.startWorkflow },
	"schedule": func(inst *instance) builtinFunc { return inst.schedule }, "made_by_reads": func(inst *instance) builtinFunc { return inst.madeByReads },
	"task":     func(inst *instance) builtinFunc { return inst.task },
	"duration": func(inst *instance) builtinFunc { return durationMillis }, "group": func(inst *instance) builtinFunc { return inst.group },
}
