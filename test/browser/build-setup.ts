import { ensurePanelBuilt } from './ensure-built.ts'

/** Once for all test files: two builds at a time would take the folder from under each other. */
export default function setup(): void {
  ensurePanelBuilt()
}
