import type { ChildProcess } from 'node:child_process'

const children = new Set<ChildProcess>()

function endAll(): void {
  for (const child of children) child.kill('SIGKILL')
}

/** Kills `child` when this process exits for any reason. */
export function killOnExit(child: ChildProcess): void {
  if (children.size === 0) process.on('exit', endAll)
  children.add(child)
  child.once('exit', () => {
    children.delete(child)
    if (children.size === 0) process.off('exit', endAll)
  })
}
