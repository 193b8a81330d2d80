import { prettyFactory } from 'pino-pretty'

/** Control characters, except the ends of lines. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g

/** @returns a function that writes a line of the log for a person at a terminal */
export function logForPeople(): (line: string) => string {
  const pretty = prettyFactory({
    colorize: false,
    singleLine: true,
    ignore: 'pid,hostname',
    translateTime: 'SYS:HH:MM:ss.l',
  })
  return line => pretty(line).replaceAll(CONTROL, '')
}
