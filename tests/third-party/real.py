"""The walk through three real servers behind one gateway: server-everything, server-filesystem and mcp-server-time, under
their own names as prefixes. client.py connects; what was seen goes into its report."""

import asyncio

import mcp_types as types

DOCUMENT = "demo://resource/static/document/features.md"
WATCHED = "demo://resource/dynamic/text/7"


async def walk(tour, client):
    await calls(tour, client)
    await reads(tour, client)
    if not tour.modern:
        await asks(tour, client)
        await hears(tour, client)
        await cancels(tour, client)


async def calls(tour, client):
    """One call and more to each, progress among it."""
    await tour.call(client, "everything_echo", {"message": "hello"})
    await tour.call(client, "everything_get-sum", {"a": 2, "b": 3})
    await tour.call(client, "everything_get-structured-content", {"location": "New York"})
    await tour.call(client, "everything_get-tiny-image")
    await tour.call(client, "everything_trigger-long-running-operation", {"duration": 0.2, "steps": 2})
    zones = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    await tour.call(client, "time_convert_time", zones)
    await tour.call(client, "time_convert_time", {**zones, "target_timezone": "Nowhere/Land"})
    allowed = tour.report["calls"]
    for _attempt in range(50):
        # The server takes up the client's roots a moment after it has started.
        await tour.call(client, "filesystem_list_allowed_directories")
        if tour.modern or tour.options.roots.removeprefix("file://") in allowed["filesystem_list_allowed_directories"]["text"]:
            break
        await asyncio.sleep(0.1)


async def reads(tour, client):
    """Resources, a template, prompts and completion of both kinds."""
    read = await client.read_resource(DOCUMENT)
    tour.report["document"] = read.contents[0].text[:20]
    read = await client.read_resource("demo://resource/dynamic/text/3")
    tour.report["templated"] = read.contents[0].text[:10]
    prompt = await client.get_prompt("everything_args-prompt", {"city": "Bern"})
    tour.report["prompt"] = prompt.messages[0].content.text
    reference = types.PromptReference(type="ref/prompt", name="everything_completable-prompt")
    completed = await client.complete(reference, {"name": "department", "value": "S"})
    tour.report["departments"] = completed.completion.values
    completed = await client.complete(reference, {"name": "name", "value": "A"}, {"department": "Engineering"})
    tour.report["people"] = completed.completion.values
    template = types.ResourceTemplateReference(type="ref/resource", uri="demo://resource/dynamic/text/{resourceId}")
    completed = await client.complete(template, {"name": "resourceId", "value": "12"})
    tour.report["ids"] = completed.completion.values


async def asks(tour, client):
    """The server asks while a call is open."""
    await tour.call(client, "everything_trigger-sampling-request", {"prompt": "what?", "maxTokens": 10})
    await tour.call(client, "everything_trigger-elicitation-request")
    await tour.call(client, "everything_get-roots-list")


async def hears(tour, client):
    """What the server says of itself: log lines, and a resource that was updated."""
    await client.set_logging_level("debug")
    await client.subscribe_resource(WATCHED)
    await tour.call(client, "everything_toggle-simulated-logging")
    await tour.call(client, "everything_toggle-subscriber-updates")
    updated = "notifications/resources/updated"
    await until(lambda: tour.report["log"] and updated in tour.report["changed"], 20)
    await client.unsubscribe_resource(WATCHED)


async def cancels(tour, client):
    """A call that nobody waits for any more; the next one is answered all the same."""
    name = "everything_trigger-long-running-operation"
    long = asyncio.ensure_future(client.call_tool(name, {"duration": 60, "steps": 60}))
    await asyncio.sleep(0.2)
    long.cancel()
    try:
        await long
    except asyncio.CancelledError:
        tour.report["cancelled"] = True
    await tour.call(client, "everything_echo", {"message": "still here"})


async def until(holds, seconds):
    for _ in range(int(seconds * 50)):
        if holds():
            return True
        await asyncio.sleep(0.02)
    return False
