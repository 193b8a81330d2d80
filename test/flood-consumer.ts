import { createServer, type Socket } from 'node:net'
import { parentPort, Worker } from 'node:worker_threads'

/** Writes for as long as the other side reads. */
function flood(socket: Socket): void {
  const block = 'HTTP/1.1 103 \r\n\r\n'.repeat(2_000)
  const more = () => {
    while (!socket.destroyed && socket.write(block));
  }
  socket
    .on('error', () => undefined)
    .on('drain', more)
    .once('data', () => {
      parentPort?.postMessage({ kind: 'request' })
      more()
    })
}

if (parentPort) {
  const server = createServer(flood)
  server.listen(0, '127.0.0.1', () => parentPort?.postMessage({ kind: 'listening', address: server.address() }))
}

export interface FloodConsumer {
  url: string
  requests(): number
  stop(): Promise<number>
}

/** A consumer in a thread of its own that answers every request with endless interim responses. */
export async function startFloodConsumer(): Promise<FloodConsumer> {
  const worker = new Worker(new URL(import.meta.url), { execArgv: [] })
  let requests = 0
  const port = await new Promise<number>((resolve, reject) => {
    worker.on('error', reject).on('message', message => {
      if (message.kind === 'listening') resolve(message.address.port)
      else requests += 1
    })
  })
  return { url: `http://127.0.0.1:${port}/hook`, requests: () => requests, stop: () => worker.terminate() }
}
