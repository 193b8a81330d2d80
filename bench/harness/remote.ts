import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

// Arguments and results are passed as structured clones. They are not checked at run time: `Remote.call` gives them the
// types of the method.
export type Methods = Record<string, (...args: never[]) => unknown>

interface Call {
  id: number
  name: string
  args: unknown[]
}

type Answer = { id: number; result: unknown } | { id: number; error: string }

/** A child process whose methods are called over Node's IPC channel. Disposing of it ends it. */
export interface Remote<M extends Methods> extends AsyncDisposable {
  readonly pid: number
  call<K extends keyof M & string>(name: K, ...args: Parameters<M[K]>): Promise<Awaited<ReturnType<M[K]>>>
}

const READY = 'ready'

/** Offers `methods` to the parent process, and exits when it does. */
export function serve(methods: Methods): void {
  process.on('message', ({ id, name, args }: Call) => {
    const answer = (message: Answer) => process.send?.(message)
    Promise.resolve()
      .then(() => methods[name]!(...(args as never[])))
      .then(
        result => answer({ id, result }),
        error => answer({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
      )
  })
  process.on('disconnect', () => process.exit())
  process.send?.(READY)
}

/** Forks `file` (of `bench/processes/`), which calls `serve`. */
export async function startProcess<M extends Methods>(
  file: string,
  nodeArguments: readonly string[] = [],
): Promise<Remote<M>> {
  const child = fork(new URL(`../processes/${file}`, import.meta.url), {
    execArgv: [...nodeArguments],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>()
  const ready = Promise.withResolvers<void>()
  let calls = 0

  child.on('message', (message: typeof READY | Answer) => {
    if (message === READY) return ready.resolve()
    const caller = waiting.get(message.id)
    waiting.delete(message.id)
    if ('error' in message) caller?.reject(new Error(`${file}: ${message.error}`))
    else caller?.resolve(message.result)
  })
  child.on('exit', (code, signal) => {
    const error = new Error(`${file} ended (${signal ?? code}).`)
    ready.reject(error)
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  })
  await ready.promise

  return {
    pid: child.pid!,
    call(name, ...args) {
      const id = calls++
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve: resolve as (result: unknown) => void, reject })
        child.send({ id, name, args } satisfies Call, error => error && reject(error))
      })
    },
    [Symbol.asyncDispose]: () => end(child),
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGCONT')
  child.kill('SIGKILL')
  await exited
}
