import { create } from 'qrcode'

/** Light modules around the code. With fewer, phones do not find it (ISO/IEC 18004 requires four). */
const QUIET_ZONE = 4
/** White on black regardless of the terminal's colours, because the characters draw the light modules. */
const COLOURS = '\u001b[97;40m'
const RESET = '\u001b[0m'

/** A QR code for a terminal, with two rows of modules per line of text. */
export function drawQr(text: string): string {
  const { modules } = create(text, { errorCorrectionLevel: 'L' })
  const isLight = (row: number, column: number) => {
    const inside = row >= 0 && column >= 0 && row < modules.size && column < modules.size
    return !inside || !modules.get(row, column)
  }
  const lines: string[] = []
  for (let row = -QUIET_ZONE; row < modules.size + QUIET_ZONE; row += 2) {
    let line = ''
    for (let column = -QUIET_ZONE; column < modules.size + QUIET_ZONE; column += 1) {
      const [upper, lower] = [isLight(row, column), isLight(row + 1, column)]
      line += upper ? (lower ? '█' : '▀') : lower ? '▄' : ' '
    }
    lines.push(`${COLOURS}${line}${RESET}`)
  }
  return lines.join('\n')
}
