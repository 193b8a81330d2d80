import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Answer = (response: ServerResponse, request: IncomingMessage) => void

/** A web server of files, which can misbehave. */
export class FileHost implements AsyncDisposable {
  readonly #server = createServer((request, response) => this.#answer(request, response))
  readonly #answers = new Map<string, Answer>()
  readonly #requests: string[] = []
  port = 0
  connections = 0

  static async listen(): Promise<FileHost> {
    const host = new FileHost()
    host.#server.on('connection', () => {
      host.connections += 1
    })
    host.#server.listen(0, '127.0.0.1')
    await once(host.#server, 'listening')
    host.port = (host.#server.address() as AddressInfo).port
    return host
  }

  /** @returns the URL */
  serve(path: string, answer: Answer): string {
    this.#answers.set(path, answer)
    return this.url(path)
  }

  file(path: string, bytes: Uint8Array, headers: Record<string, string> = {}): string {
    return this.serve(path, response => response.writeHead(200, headers).end(bytes))
  }

  redirect(path: string, location: string): string {
    return this.serve(path, response => response.writeHead(302, { location }).end())
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.port}${path}`
  }

  requestsOf(path: string): number {
    return this.#requests.filter(each => each === path).length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise(resolve => this.#server.close(resolve))
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? ''
    this.#requests.push(path)
    const answer = this.#answers.get(path)
    if (answer === undefined) response.writeHead(404).end()
    else answer(response, request)
  }
}

/** Sends random bytes for as long as somebody reads them. */
export function endless(start: Uint8Array, headers: Record<string, string> = {}): Answer {
  return response => {
    response.writeHead(200, headers)
    response.write(start)
    const block = Buffer.alloc(65_536, 7)
    const more = () => {
      while (!response.destroyed && response.write(block));
    }
    response.on('drain', more)
    more()
  }
}
