import type { ChildProcess } from 'node:child_process'

const children = new Set<ChildProcess>()

function endAll(): void {
  for (const child of children) child.kill('SIGKILL')
}

/** The process ends with this one, however that ends. */
export function endWithUs(child: ChildProcess): void {
  if (children.size === 0) process.on('exit', endAll)
  children.add(child)
  child.once('exit', () => {
    children.delete(child)
    if (children.size === 0) process.off('exit', endAll)
  })
}
