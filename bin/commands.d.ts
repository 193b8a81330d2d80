export interface Command {
  source: string
  isServer?: boolean
  args?: string
  hasOwnHelp?: boolean
  summary: string
}
export const COMMANDS: Readonly<Record<string, Command>>
export const USAGE: string
export function usageOf(name: string): string
