# docker build -t elmo-zh . && docker run --rm -v "$PWD:/work" elmo-zh embed file.txt --output vectors.hdf5
FROM python:3.13-slim
WORKDIR /elmo-zh
COPY . .
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \
    -c constraints.txt "torch==$(sed -n 's/^torch==//p' constraints.txt)+cpu" \
    && pip install --no-cache-dir -c constraints.txt ".[corpus,explore,tasks]" ./data/starter
WORKDIR /work
ENTRYPOINT ["elmo-zh"]
CMD ["--help"]
