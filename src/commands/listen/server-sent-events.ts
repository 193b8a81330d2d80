/** One block of a stream of server-sent events (WHATWG HTML, "Server-sent events"). */
interface ServerSentEvent {
  id: string | null
  /** Null for a block that carries only an ID, or only a comment. */
  data: string | null
}

/** Parses a stream whose lines end with a line feed. A block that is cut off at the end is dropped. */
export async function* readServerSentEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of bytes) {
    rest += decoder.decode(chunk, { stream: true })
    const blocks = rest.split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) yield parseBlock(block)
  }
}

function parseBlock(block: string): ServerSentEvent {
  const event: ServerSentEvent = { id: null, data: null }
  for (const line of block.split('\n')) {
    if (line.startsWith('id: ')) event.id = line.slice(4)
    else if (line.startsWith('data: ')) event.data = line.slice(6)
  }
  return event
}
