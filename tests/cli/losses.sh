#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Losses, labels and metrics.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"
once="--epochs 1 --threads 1 --quiet"

# A line is learnt exactly: target = 2 a - 3 b + 1.
run 0 train line.onnxtxt --data line.csv --loss mse --epochs 150 --lr 0.05 --batch-size 20 --threads 1 --out line.onnx --json
json r2 'v > 0.999'
json mae 'v < 0.05'
run 0 eval line.onnx --data line.csv --loss mse
out "60 rows: loss"
out "R2 "
run 0 info line.onnx --text
run 0 train line.onnxtxt --data line.csv --loss l1 --epochs 150 --lr 0.05 --schedule linear --batch-size 20 --json
json r2 'v > 0.99'

# One logit against 0 and 1.
run 0 train line.onnxtxt --data sides.csv --loss bce-with-logits --epochs 60 --lr 0.05 --batch-size 20 --out sides.onnx --json
json accuracy 'v > 0.95'
run 0 eval sides.onnx --data sides.csv --loss bce-with-logits
out "accuracy"

# Classes 1 and 2, or -1 and 1, are no probabilities: their loss would fall below zero for ever.
sed '1!s/1$/2/; 1!s/0$/1/' sides.csv >twos.csv
line=$(grep -n ',2$' twos.csv | head -n 1 | cut -d : -f 1)
refuses 1 "twos.csv: line $line, column 3 ('target'): 2 is outside 0..1, which binary cross entropy takes" \
    eval sides.onnx --data twos.csv --loss bce-with-logits
refuses 1 "column 3 ('target'): 2 is outside 0..1" train line.onnxtxt --data twos.csv --loss bce-with-logits $once
sed '1!s/0$/-1/' sides.csv >signs.csv
refuses 1 "('target'): -1 is outside 0..1" eval sides.onnx --data signs.csv --loss bce-with-logits
run 0 artifacts line.onnxtxt --loss mse --loss 0.5*bce-with-logits:y=side --out sides_artifacts
refuses 1 "2 is outside 0..1" train sides_artifacts --data twos.csv --bind x=a,b --bind target=b --bind side=target $once
sed '1!s/1$/0.9/; 1!s/0$/0.1/' sides.csv >smooth.csv
run 0 train line.onnxtxt --data smooth.csv --loss bce-with-logits $once

# Scores that went through the loss's own softmax or sigmoid train badly; the remedy works.
sed 's/scores = Gemm/logits = Gemm/; s/^}/    [last] scores = Softmax (logits)\n}/' mlp.onnxtxt >ended.onnxtxt
again="cross-entropy takes 'scores', which comes after Softmax 'last', but expects scores: it applies Softmax itself"
run 0 check ended.onnxtxt
out "note     $again"
run 0 train ended.onnxtxt --data plain.csv --scale 0.01 --epochs 1 --log ended.jsonl
out "note: $again"
grep -q '^{"event":"note","text":"cross-entropy takes' ended.jsonl || fail "$ran: the log lacks the note"
run 0 eval ended.onnxtxt --data plain.csv
err "onnxtrain: note: $again"
run 0 artifacts ended.onnxtxt --out ended_artifacts
err "onnxtrain: note: $again"
run 0 train ended.onnxtxt --data plain.csv --scale 0.01 --epochs 15 --lr 0.02 --batch-size 16 --threads 1 \
    --loss-input logits --out ended.onnx --json
json accuracy 'v > 0.95'
run 0 train ended.onnxtxt --data plain.csv --loss-input logits --epochs 1
grep -q "^note" out && fail "$ran: a note on a loss that takes the right value"
run 0 info ended.onnx
out "scores"
sed 's/y = Gemm/raw = Gemm/; s/^}/    p = Sigmoid (raw) y = Identity (p)\n}/' line.onnxtxt >gated.onnxtxt
run 0 train gated.onnxtxt --data sides.csv --loss bce-with-logits --epochs 1
out "note: bce-with-logits takes 'y', which comes after Sigmoid of 'p', but expects scores"

# A loss written by hand: mean((y - target)^2) is mse, bit for bit but for its nodes.
cat >loss.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
loss (float[batch, 1] y, float[batch, 1] target) => (float loss)
{
    difference = Sub (y, target)
    square = Mul (difference, difference)
    loss = ReduceMean <keepdims = 0> (square)
}
END
run 0 train line.onnxtxt --data line.csv --loss loss.onnxtxt --epochs 150 --lr 0.05 --batch-size 20 --threads 1 \
    --out custom.onnx --json
json loss 'v < 0.01'
run 0 eval custom.onnx --data line.csv --loss mse --ignore-recorded --json
json r2 'v > 0.999'
refuses 1 "no_such_loss.onnx" train line.onnxtxt --data line.csv --loss no_such_loss.onnx

# The loss as the model's own first output.
cat >own.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
own (float[batch, 2] x, float[batch, 1] target) => (float loss, float[batch, 1] y)
<float[2, 1] w = {0.0, 0.0}, float[1] b = {0.0}>
{
    y = Gemm (x, w, b)
    difference = Sub (y, target)
    square = Mul (difference, difference)
    loss = ReduceMean <keepdims = 0> (square)
}
END
run 0 train own.onnxtxt --data line.csv --bind x=a,b --bind target=target --loss none --epochs 150 --lr 0.05 --batch-size 20 --json
json loss 'v < 0.01'

# Text labels become classes, sorted, and the trained file knows them.
run 0 train mlp.onnxtxt --data text.csv --scale 0.004 --epochs 15 --lr 0.02 --batch-size 16 --threads 1 --out text.onnx --json
json accuracy 'v > 0.95'
cp out trained
run 0 eval text.onnx --data text.csv.gz --scale 0.004 --json
json accuracy 'v > 0.95'
grep -v green text.csv >no_green.csv # red must not become class 0
run 0 eval text.onnx --data no_green.csv --scale 0.004 --json
json accuracy 'v > 0.95'
sed 's/red/violet/' text.csv >violet.csv
line=$(grep -n violet violet.csv | head -n 1 | cut -d : -f 1)
refuses 1 "violet.csv: line $line, column 5 ('kind'): 'violet' is not a known class" eval text.onnx --data violet.csv
sed '2s/red\|green\|"blue, or so"/violet/' text.csv >four.csv
refuses 1 "the labels are 4 different strings, the model has 3 classes" train mlp.onnxtxt --data four.csv $once

# Class weights and ignored labels.
run 0 train mlp.onnxtxt --data plain.csv --class-weights 1,2,0.5 $once
refuses 2 "--class-weights" train mlp.onnxtxt --data plain.csv --class-weights 1,x $once
refuses 2 "--ignore-index" train mlp.onnxtxt --data plain.csv --ignore-index x $once
sed '3s/.$/-1/' plain.csv >hole.csv
run 0 train mlp.onnxtxt --data hole.csv --ignore-index -1 --split 0.2 $once

# Two classes are looked for in each row, and the scores have theirs on the last axis.
cat >tokens.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
tokens (float[batch, 2, 2] x) => (float[batch, 2, 3] scores)
{
    w = RandomNormal <shape = [2, 3], scale = 0.5> ()
    b = RandomNormal <shape = [3], scale = 0.1> ()
    product = MatMul (x, w)
    scores = Add (product, b)
}
END
sed 's/(float\[batch, 2, 3\] scores)/(float[batch, 3, 2] turned)/; s/^}/    turned = Transpose <perm = [0, 2, 1]> (scores)\n}/' \
    tokens.onnxtxt >turned.onnxtxt
awk -F , '{ print $1, $2, $3, $4, $5, ($5 + 1) % 3 }' OFS=, plain.csv | sed '1s/.*/a,b,c,d,first,second/' >tokens.csv
tokens="--data tokens.csv --bind x=a:d --bind labels=first,second --scale 0.01 --epochs 5 --lr 0.05 --threads 1"
run 0 train turned.onnxtxt $tokens --json
cp out expected
run 0 train tokens.onnxtxt $tokens --class-axis -1 --out tokens.onnx --json
close_to_expected() {
    for key in loss accuracy; do
        json $key "abs(v - $(python3 -c 'import json, sys; print(json.load(open("expected"))[sys.argv[1]])' $key)) < 1e-5"
    done
}
close_to_expected
run 0 eval tokens.onnx --data tokens.csv --bind x=a:d --bind labels=first,second --scale 0.01 --class-axis -1 --json
json accuracy 'v > 0.4'
run 0 artifacts tokens.onnxtxt --class-axis -1 --ignore-index -9 --out tokens_artifacts
run 0 train tokens_artifacts $tokens --json
close_to_expected
refuses 1 "wants rows of [3]" train turned.onnxtxt $tokens --class-axis -1
refuses 2 "--class-axis" train tokens.onnxtxt $tokens --class-axis 2
refuses 2 "--class-axis: no --loss is cross-entropy" train tokens.onnxtxt $tokens --class-axis -1 --loss mse

# Optimizers, schedules, clipping, accumulation.
for optimizer in adamw sgd sgd-momentum; do
    for schedule in constant linear cosine step exponential polynomial; do
        run 0 train mlp.onnxtxt --data plain.csv --optimizer $optimizer --schedule $schedule --warmup 2 --clip-norm 1 $once
    done
done
# Every schedule begins after the warm-up; the log has the rate of the step to come.
run 0 train mlp.onnxtxt --data plain.csv --batch-size 10 --epochs 1 --lr 1 --schedule step --step-size 2 --gamma 0.5 --warmup 2 --log rates.jsonl --quiet
[ "$(grep '"event":"step"' rates.jsonl | sed 's/.*"lr":\([0-9.]*\),.*/\1/' | head -n 6 | xargs)" = "0.5 1.0 1.0 0.5 0.5 0.25" ] || fail "$ran: the rates differ"
run 0 train mlp.onnxtxt --data plain.csv --optimizer sgd-momentum --nesterov --momentum 0.5 --weight-decay 0.01 $once
run 0 train mlp.onnxtxt --data plain.csv --adam-mode 0 --beta1 0.8 --beta2 0.9 --epsilon 1e-8 --weight-decay 0.1 $once
run 0 train mlp.onnxtxt --data plain.csv --batch-size 10 --accumulate 3 --epochs 2 --threads 1 --json
json step 'v == 4'
run 0 train mlp.onnxtxt --data plain.csv --batch-size 10 --max-steps 5 --threads 1 --json
json step 'v == 5'
run 1 train mlp.onnxtxt --data plain.csv --optimizer sgd --lr 1e30 --epochs 3 --threads 1
err "the loss is"

# Initial values by pattern; the log.
run 0 train mlp.onnxtxt --data plain.csv --init 'w*=zeros' --epochs 1 --threads 1 --log run.jsonl --checkpoint-dir saved --quiet
python3 - <<'END' || fail "$ran: run.jsonl is not as described"
import json
events = [json.loads(line) for line in open("run.jsonl")]
assert [e["event"] for e in events] == ["options", "step", "step", "epoch", "saved"], events
assert events.pop(0)["options"]["train"]["init"] == ["w*=zeros"]
assert events[1]["step"] == 2 and events[2]["training"]["rows"] == 60 and events[3]["path"] == "saved/checkpoint", events
END
echo ok
