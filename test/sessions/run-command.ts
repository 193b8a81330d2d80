import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'

const PROGRAM = join(import.meta.dirname, '../../bin/pombal.js')

export interface CommandRun {
  code: number | null
  output: string
}

/** Runs a command of Pombal to its end. @param killWhen whether to kill it, by its output @param stdin a file to read */
export function runCommand(
  args: readonly string[],
  env: Record<string, string | undefined>,
  killWhen?: (output: string) => boolean,
  stdin = '/dev/null',
): Promise<CommandRun> {
  const input = openSync(stdin, 'r')
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: [input, 'pipe', 'pipe'],
  })
  closeSync(input)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', text => {
      output += text
      if (killWhen?.(output)) child.kill('SIGKILL')
    })
  return new Promise(resolve => child.on('close', code => resolve({ code, output })))
}
