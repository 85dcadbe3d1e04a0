"""How the Python SDK follows tasks: those of the extension of 2026-07-28, and those of 2025-11-25. What came first, how often
it was asked, and the last status go into a report."""

import asyncio
from typing import Any, Literal

import mcp_types as types
from mcp.client.extension import ClientExtension, ResultClaim

EXTENSION = "io.modelcontextprotocol/tasks"
OVER = ("completed", "failed", "cancelled")


class Started(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class AnyResult(types.Result):
    model_config = {"extra": "allow"}


class Ask(types.Request[dict[str, Any], str]):
    name_param = "taskId"


class Tasks(ClientExtension):
    identifier = EXTENSION

    def __init__(self, report):
        self.report = report

    def claims(self):
        return [ResultClaim(result_type="task", model=Started, resolve=self.finish)]

    async def finish(self, started, context):
        self.report["first"] = started.model_dump(by_alias=True)
        while True:
            ask = Ask(method="tasks/get", params={"taskId": started.task_id})
            task = (await context.session.send_request(ask, AnyResult)).model_dump(by_alias=True)
            self.report["asked"] += 1
            self.report["status"] = task["status"]
            if task["status"] in OVER:
                return types.CallToolResult.model_validate(task["result"])
            await asyncio.sleep(0.1)


async def task(session, report, name, arguments):
    params = types.CallToolRequestParams(name=name, arguments=arguments, task=types.TaskMetadata(ttl=60000))
    # The SDK has the types of tasks in this revision, and a check that knows calls without tasks only: it is stepped round.
    call = types.CallToolRequest(params=params).model_dump(by_alias=True, mode="json", exclude_none=True)
    how = {}
    session._stamp(call, how)
    report["first"] = await session._dispatcher.send_raw_request("tools/call", call["params"], how)
    made = types.CreateTaskResult.model_validate(report["first"])
    params = types.GetTaskRequestParams(task_id=made.task.task_id)
    seen = await session.send_request(types.GetTaskRequest(params=params), types.GetTaskResult)
    report["status"] = seen.status
    params = types.GetTaskPayloadRequestParams(task_id=made.task.task_id)
    result = await session.send_request(types.GetTaskPayloadRequest(params=params), AnyResult)
    report["asked"] += 1
    raw = result.model_dump(by_alias=True)
    report["related"] = raw["_meta"]["io.modelcontextprotocol/related-task"]["taskId"]
    return types.CallToolResult.model_validate(raw)
