import { LocalHints } from '../../store/hints.ts'
import type { Store } from '../../store/store.ts'
import type { FromThread, PlainError, Subject, ThreadStore, ToThread } from './messages.ts'
import { fromPlain } from './plain-errors.ts'

/** Hints that the main thread forwards. */
export class ForwardedHints extends LocalHints {
  override readonly shared: boolean

  constructor(shared: boolean) {
    super()
    this.shared = shared
  }

  take({ topic, instanceId, origin, about }: Extract<ToThread, { kind: 'hint' }>): void {
    this.publish(topic, instanceId, about, origin)
  }
}

/** Calls of the main thread that wait for their result. */
export class Calls {
  readonly #post: (message: FromThread) => void
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  #last = 0

  constructor(post: (message: FromThread) => void) {
    this.#post = post
  }

  make(message: (call: number) => FromThread): Promise<unknown> {
    const call = ++this.#last
    const result = Promise.withResolvers<unknown>()
    this.#waiting.set(call, result)
    this.#post(message(call))
    return result.promise
  }

  resolve(call: number, value: unknown): void {
    this.#take(call)?.resolve(value)
  }

  reject(call: number, error: PlainError): void {
    this.#take(call)?.reject(fromPlain(error))
  }

  /** Only a call can be undeliverable, because of its arguments. */
  failUndeliverable(message: FromThread, error: unknown): void {
    if (!('call' in message)) throw error
    this.#take(message.call)?.reject(error)
  }

  #take(call: number): PromiseWithResolvers<unknown> | undefined {
    const waiting = this.#waiting.get(call)
    this.#waiting.delete(call)
    return waiting
  }
}

/** The store, called in the main thread. Calls arrive in their order. */
export function remoteStore(calls: Calls, hints: ForwardedHints): ThreadStore & Pick<Store, 'hints'> {
  function subject<S extends Subject>(name: S): ThreadStore[S] {
    const methods = {
      get: (_: object, method: string) => {
        return (...args: unknown[]) => calls.make(call => ({ kind: 'call', call, subject: name, method, args }))
      },
    }
    // The main thread answers each method as its interface states.
    return new Proxy({} as ThreadStore[S], methods as ProxyHandler<ThreadStore[S]>)
  }
  return {
    connections: subject('connections'),
    messages: subject('messages'),
    events: subject('events'),
    credentials: subject('credentials'),
    numbers: subject('numbers'),
    media: subject('media'),
    downloads: subject('downloads'),
    hints,
  }
}
